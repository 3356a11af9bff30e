package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/cespare/xxhash/v2"
)

// cluster is one etcd cluster and the Hooklocks in front of it. Weight is what it carries beside
// the others; 1 is normal.
type cluster struct {
	name   string
	weight float64
}

func clusters(n int) []cluster {
	all := make([]cluster, n)
	for i := range all {
		all[i] = cluster{fmt.Sprintf("hooks-%d", i), 1}
	}
	return all
}

// place is the index of the cluster of a workflow: the one with the highest score (Thaler and
// Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996). The score -weight/ln(hash)
// gives each cluster its share by weight, and a cluster that joins or leaves changes the place of
// nobody but its own (Schindelhauer and Schomaker, "Weighted Distributed Hash Tables", 2005).
func place(workflow string, among []cluster) int {
	best, highest := -1, math.Inf(-1)
	for i, c := range among {
		h := xxhash.New()
		_, _ = h.WriteString(c.name) // a hash in memory has no errors
		_, _ = h.Write([]byte{0})
		_, _ = h.WriteString(workflow)
		unit := (float64(h.Sum64()>>11) + 0.5) / (1 << 53) // in (0, 1)
		if score := -c.weight / math.Log(unit); score > highest {
			best, highest = i, score
		}
	}
	return best
}

// modulo is what many would write first.
func modulo(workflow string, among []cluster) int {
	return int(xxhash.Sum64String(workflow) % uint64(len(among)))
}

// workflow has a name and its share of all deliveries.
type workflow struct {
	name string
	load float64
}

// accounts are workflows whose load falls with their rank, as that of customers does: the r-th has
// 1/r^skew of the first. skew 0: all alike. The order is shuffled with a fixed seed, so that each
// run has the same.
func accounts(n int, skew float64) []workflow {
	all := make([]workflow, n)
	sum := 0.0
	for i := range all {
		all[i] = workflow{fmt.Sprintf("stripe/acct_%06d", i), math.Pow(float64(i+1), -skew)}
		sum += all[i].load
	}
	for i := range all {
		all[i].load /= sum
	}
	rand.New(rand.NewPCG(7, 7)).Shuffle(n, func(i, j int) { all[i].load, all[j].load = all[j].load, all[i].load })
	return all
}
