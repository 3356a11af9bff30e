package model

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
)

// result is what a search found.
type result struct {
	states   int
	complete bool // every reachable state was seen
	broken   promise
	trace    []string // the shortest one that breaks it
}

// judge canonicalises a state that a step has led to and says which promise is broken.
func (m *model) judge(n *state) promise {
	m.canonical(n)
	if m.broken == "" {
		m.check(n)
	}
	p := m.broken
	m.broken = ""
	return p
}

type node struct{ parent, step int32 }

// explore visits every reachable state, breadth first, until a promise breaks or there are too
// many.
func (m *model) explore(limit int) (r result) {
	known := newSet()
	first := m.initial()
	known.add(first)
	nodes := []node{{-1, 0}}
	front, ids := []state{*first}, []int32{0}
	for len(front) > 0 {
		var next []state
		var nextIDs []int32
		for i := range front {
			number := int32(-1)
			m.successors(&front[i], func(n *state, _ step) {
				number++
				if r.broken != "" {
					m.broken = ""
					return
				}
				r.broken = m.judge(n)
				if !known.add(n) && r.broken == "" {
					return
				}
				nodes = append(nodes, node{ids[i], number})
				next = append(next, *n)
				nextIDs = append(nextIDs, int32(len(nodes)-1))
			})
			if r.broken != "" {
				r.trace = m.replay(nodes)
			}
			if r.broken != "" || len(nodes) > limit {
				r.states = len(nodes)
				return r
			}
		}
		front, ids = next, nextIDs
	}
	r.states, r.complete = len(nodes), true
	return r
}

// replay tells the way to the last node.
func (m *model) replay(nodes []node) (trace []string) {
	var steps []int32
	for i := int32(len(nodes) - 1); i > 0; i = nodes[i].parent {
		steps = append(steps, nodes[i].step)
	}
	s := *m.initial()
	for _, taken := range slices.Backward(steps) {
		number := int32(0)
		var reached state
		m.successors(&s, func(n *state, st step) {
			if number == taken {
				reached = *n
				trace = append(trace, st.String())
			}
			number++
		})
		m.broken = ""
		s = reached
		m.canonical(&s)
	}
	return trace
}

func (st step) String() string {
	if st.how == "" {
		return fmt.Sprintf("%s (%d, %d)", st.what, st.who, st.about)
	}
	return fmt.Sprintf("%s of execution %d %s (%d)", st.what, st.about, st.how, st.who)
}

// wander takes random walks, for bounds that cannot be explored.
func (m *model) wander(r *rand.Rand, walks, depth int) (out result) {
	for range walks {
		s := *m.initial()
		var trace []string
		for range depth {
			var next state
			var how step
			var broken promise
			choices := 0
			m.successors(&s, func(n *state, st step) {
				if choices++; r.IntN(choices) == 0 {
					next, how, broken = *n, st, m.broken
				}
				m.broken = ""
			})
			if choices == 0 {
				break
			}
			s, m.broken = next, broken
			trace = append(trace, how.String())
			out.states++
			if out.broken = m.judge(&s); out.broken != "" {
				out.trace = trace
				return out
			}
		}
	}
	return out
}

// set remembers states by 64 bits of hash. With n states two of them collide with probability
// n²/2^65: one in ten million for two million, and then one state is not looked at.
type set struct {
	seed  maphash.Seed
	slots []uint64 // 0 = empty
	count int
}

func newSet() *set { return &set{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<16)} }

// add reports whether s is new.
func (k *set) add(s *state) bool {
	h := maphash.Comparable(k.seed, *s) | 1
	if !k.put(h) {
		return false
	}
	if k.count++; k.count*2 > len(k.slots) {
		old := k.slots
		k.slots = make([]uint64, 2*len(old))
		for _, h := range old {
			if h != 0 {
				k.put(h)
			}
		}
	}
	return true
}

func (k *set) put(h uint64) bool {
	for i := h >> 1; ; i++ {
		switch slot := &k.slots[i&uint64(len(k.slots)-1)]; *slot {
		case 0:
			*slot = h
			return true
		case h:
			return false
		}
	}
}
