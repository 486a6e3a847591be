import networkx


def work():
    graph = networkx.karate_club_graph()
    yield graph.number_of_nodes(), graph.number_of_edges(), round(networkx.average_clustering(graph), 9)
    ranked = sorted(networkx.betweenness_centrality(graph).items(), key=lambda item: -item[1])[:3]
    yield [(node, round(value, 9)) for node, value in ranked]
    weighted = networkx.Graph()
    weighted.add_weighted_edges_from([("a", "b", 4), ("a", "c", 1), ("c", "b", 2), ("b", "d", 5), ("e", "f", 1)])
    yield networkx.shortest_path(weighted, "a", "d", weight="weight"), networkx.dijkstra_path_length(weighted, "a", "d")
    yield sorted(map(sorted, networkx.connected_components(weighted))), sorted(networkx.minimum_spanning_edges(weighted, data=False))
    yield list(networkx.topological_sort(networkx.DiGraph([(1, 2), (2, 3), (1, 3)]))), networkx.is_planar(networkx.complete_graph(5))
    flow = networkx.DiGraph()
    flow.add_edge("s", "a", capacity=3)
    flow.add_edge("a", "t", capacity=2)
    yield networkx.maximum_flow_value(flow, "s", "t"), networkx.diameter(networkx.path_graph(6)), networkx.to_dict_of_lists(flow)
    yield [sorted(group) for group in networkx.community.greedy_modularity_communities(graph)]
    yield sorted(networkx.fast_gnp_random_graph(12, 0.3, seed=7).edges), list(networkx.generate_graphml(flow))
    try:
        yield networkx.pagerank(networkx.path_graph(3))
    except ImportError as error:
        yield type(error).__name__
