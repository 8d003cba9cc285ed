-- A row for every member of the extension, with its definition, privileges, comment and dependencies. Two databases have the same rows if
-- their extensions have the same objects. The definition is NULL for kinds of objects that this query does not read.
SET search_path = pg_catalog;
SELECT i.type, i.identity, CASE WHEN d.classid = 'pg_proc'::regclass AND a.aggfnoid IS NULL THEN pg_get_functiondef(d.objid)
		WHEN a.aggfnoid IS NOT NULL THEN concat_ws(' ', to_jsonb(a) || jsonb_build_object('aggtranstype', a.aggtranstype::regtype,
				'aggmtranstype', a.aggmtranstype::regtype, 'aggsortop', a.aggsortop::regoperator),
			to_jsonb(p) - '{oid,pronamespace,proowner,provariadic,prorettype,proargtypes,proallargtypes,proacl}'::text[],
			pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
		WHEN c.relkind = 'v' THEN concat_ws(' ', pg_get_viewdef(c.oid), c.reloptions,
			(SELECT string_agg(concat_ws(' ', attname, atttypid::regtype, atttypmod, attcollation::regcollation, attacl), ', ' ORDER BY attnum)
				FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0))
		WHEN t.typtype = 'b' THEN concat_ws(' ', to_jsonb(t) - '{oid,typnamespace,typowner,typrelid,typelem,typarray,typacl}'::text[],
			t.typelem::regtype, t.typarray::regtype)
		WHEN t.typtype = 'c' THEN 'row of a view' END AS definition,
	p.proacl, c.relacl, t.typacl, n.initprivs, obj_description(d.objid, d.classid::regclass::text) AS comment,
	(SELECT string_agg(concat(o.deptype, ' ', described), ', ' ORDER BY o.deptype, described COLLATE "C")
		FROM pg_depend o, pg_describe_object(o.refclassid, o.refobjid, o.refobjsubid) described
		WHERE o.classid = d.classid AND o.objid = d.objid) AS depends
FROM pg_depend d JOIN pg_extension x ON d.refclassid = 'pg_extension'::regclass AND x.oid = d.refobjid AND extname = 'gpuagg'
	CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, d.objsubid) i
	LEFT JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
	LEFT JOIN pg_aggregate a ON a.aggfnoid = p.oid
	LEFT JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
	LEFT JOIN pg_type t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
	LEFT JOIN pg_init_privs n ON n.classoid = d.classid AND n.objoid = d.objid
WHERE d.deptype = 'e'
ORDER BY i.type COLLATE "C", i.identity COLLATE "C";
