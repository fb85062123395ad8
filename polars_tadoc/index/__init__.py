"""The search index: coded postings made of term vectors, and ranked queries over them.

After Ding, He, Yan and Suel, "Using graphics processors for high performance IR query processing", WWW 2009. The data
goes from compressed column (``build``) to segments of postings (``segment``); queries from text to words (``analyzer``)
to lists with weights (``scoring``) to the best documents (``search``). ``index`` is what users hold.
"""
