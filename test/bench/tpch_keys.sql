-- Adds primary keys, foreign keys and indexes on the columns of foreign keys to the filled tables of TPC-H.
SET maintenance_work_mem = '256MB';
ALTER TABLE region ADD PRIMARY KEY (r_regionkey);
ALTER TABLE nation ADD PRIMARY KEY (n_nationkey), ADD FOREIGN KEY (n_regionkey) REFERENCES region;
ALTER TABLE supplier ADD PRIMARY KEY (s_suppkey), ADD FOREIGN KEY (s_nationkey) REFERENCES nation;
ALTER TABLE part ADD PRIMARY KEY (p_partkey);
ALTER TABLE partsupp ADD PRIMARY KEY (ps_partkey, ps_suppkey), ADD FOREIGN KEY (ps_partkey) REFERENCES part,
    ADD FOREIGN KEY (ps_suppkey) REFERENCES supplier;
ALTER TABLE customer ADD PRIMARY KEY (c_custkey), ADD FOREIGN KEY (c_nationkey) REFERENCES nation;
ALTER TABLE orders ADD PRIMARY KEY (o_orderkey), ADD FOREIGN KEY (o_custkey) REFERENCES customer;
ALTER TABLE lineitem ADD PRIMARY KEY (l_orderkey, l_linenumber), ADD FOREIGN KEY (l_orderkey) REFERENCES orders,
    ADD FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp;
CREATE INDEX ON nation (n_regionkey);
CREATE INDEX ON supplier (s_nationkey);
CREATE INDEX ON partsupp (ps_suppkey);
CREATE INDEX ON customer (c_nationkey);
CREATE INDEX ON orders (o_custkey);
CREATE INDEX ON lineitem (l_partkey, l_suppkey);
CREATE INDEX ON lineitem (l_suppkey);
VACUUM (FREEZE, ANALYZE) region, nation, supplier, part, partsupp, customer, orders, lineitem;
