"""The search index: coded postings made from term vectors, and ranked queries over them.

After Ding, He, Yan and Suel, "Using graphics processors for high performance IR query processing", WWW 2009.
``construct`` makes segments of postings from compressed columns, ``store`` saves and loads them, ``query`` answers
queries, ``serve`` answers streams of queries. :mod:`.index` has the public class.
"""
