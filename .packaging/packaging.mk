# Releases.
#
#	make dist		gpuagg-VERSION.zip for PGXN, of what is committed; VERSION is that of META.json
#	make packages	Debian packages, built, installed and tested in chroots (test/packages.sh); SUITES="bookworm trixie"
.PHONY: dist packages

DIST = gpuagg-$(shell sed -n 's/^   "version": "\(.*\)",/\1/p' $(TOP)META.json)

dist:
	git -C $(or $(TOP),.) archive --format=zip --prefix=$(DIST)/ --output=$(CURDIR)/$(DIST).zip HEAD

packages:
	@$(TOP)test/packages.sh $(SUITES)
