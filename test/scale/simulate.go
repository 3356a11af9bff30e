package main

import (
	"fmt"
	"io"
	"slices"
)

// populations are what the tables are about.
var populations = []struct {
	name string
	n    int
	skew float64
}{
	{"1 000 accounts, all alike", 1_000, 0},
	{"100 000 accounts, all alike", 100_000, 0},
	{"100 000 accounts, the r-th with 1/r^0.8 of the first", 100_000, 0.8},
	{"1 000 accounts, the r-th with 1/r of the first", 1_000, 1},
}

// loads is the share of deliveries of each cluster.
func loads(flows []workflow, among []cluster) []float64 {
	got := make([]float64, len(among))
	for _, f := range flows {
		got[place(f.name, among)] += f.load
	}
	return got
}

func reportLoad(w io.Writer) error {
	if _, err := fmt.Fprint(w, "How much the busiest cluster has, beside the mean:\n\n| Workflows | the busiest one "+
		"alone, of all | 2 clusters | 4 | 8 |\n| --- | --- | --- | --- | --- |\n"); err != nil {
		return err
	}
	for _, p := range populations {
		flows := accounts(p.n, p.skew)
		busiest := slices.MaxFunc(flows, func(a, b workflow) int {
			if a.load < b.load {
				return -1
			}
			return 1
		})
		row := fmt.Sprintf("| %s | %.2f %% |", p.name, 100*busiest.load)
		for _, n := range []int{2, 4, 8} {
			row += fmt.Sprintf(" %.2f |", slices.Max(loads(flows, clusters(n)))*float64(n))
		}
		if _, err := fmt.Fprintln(w, row); err != nil {
			return err
		}
	}
	return nil
}

// moved is the share of deliveries whose workflow has another cluster afterwards.
func moved(flows []workflow, before, after []cluster, by func(string, []cluster) int) float64 {
	sum := 0.0
	for _, f := range flows {
		if before[by(f.name, before)].name != after[by(f.name, after)].name {
			sum += f.load
		}
	}
	return sum
}

func reportGrowth(w io.Writer) error {
	if _, err := fmt.Fprint(w, "\nHow many of the workflows move when a cluster is added (100 000 accounts, all "+
		"alike):\n\n| | rendezvous hash | the share of the new one | hash modulo clusters |\n| --- | --- | --- | "+
		"--- |\n"); err != nil {
		return err
	}
	flows := accounts(100_000, 0)
	for _, n := range []int{1, 2, 4, 8} {
		before, after := clusters(n), clusters(n+1)
		if _, err := fmt.Fprintf(w, "| %d → %d | %.1f %% | %.1f %% | %.1f %% |\n", n, n+1,
			100*moved(flows, before, after, place), 100/float64(n+1),
			100*moved(flows, before, after, modulo)); err != nil {
			return err
		}
	}
	double := clusters(5)
	double[4].weight = 2
	_, err := fmt.Fprintf(w, "| 4 → 5, the new one twice as large | %.1f %% | %.1f %% | |\n",
		100*moved(flows, clusters(4), double, place), 100*2.0/6)
	return err
}

func reportLoss(w io.Writer) error {
	if _, err := fmt.Fprint(w, "\nWhat the loss of one cluster means (100 000 accounts, the r-th with 1/r^0.8 of "+
		"the first):\n\n| Clusters | deliveries that get 503 meanwhile | of the others, moved | if they were sent "+
		"elsewhere: the busiest one then has |\n| --- | --- | --- | --- |\n"); err != nil {
		return err
	}
	flows := accounts(100_000, 0.8)
	for _, n := range []int{2, 4, 8} {
		all := clusters(n)
		rest := all[1:]
		before := loads(flows, all)
		var others []workflow
		for _, f := range flows {
			if place(f.name, all) != 0 {
				others = append(others, f)
			}
		}
		grown := slices.Max(loads(flows, rest)) / slices.Max(before[1:])
		if _, err := fmt.Fprintf(w, "| %d | %.1f %% | %.1f %% | %.2f times as much |\n", n, 100*before[0],
			100*moved(others, all, rest, place), grown); err != nil {
			return err
		}
	}
	return nil
}
