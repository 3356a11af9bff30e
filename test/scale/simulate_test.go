package main

import (
	"bytes"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated table of docs/scale.md")

const page = "../../docs/scale.md"

func TestThePageHasTheLoadOfTheSimulation(t *testing.T) {
	var tables bytes.Buffer
	if err := reportLoad(&tables); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- generated: simulation -->\n", "<!-- end: simulation -->"
	before, rest, has := strings.Cut(string(text), begin)
	old, after, closed := strings.Cut(rest, end)
	if !has || !closed {
		t.Fatal("docs/scale.md has no place for the table")
	}
	if old == tables.String() {
		return
	}
	if !*update {
		t.Fatal("docs/scale.md has another table; run go test ./test/scale -run Page -update")
	}
	if err := os.WriteFile(page, []byte(before+begin+tables.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAWorkflowMovesOnlyToTheClusterThatIsNew(t *testing.T) {
	flows := accounts(20_000, 0)
	before, after := clusters(4), clusters(5)
	n := 0
	for _, f := range flows {
		from, to := place(f.name, before), place(f.name, after)
		if from == to {
			continue
		}
		n++
		if to != 4 {
			t.Fatalf("%s moved from %d to %d", f.name, from, to)
		}
	}
	if share := float64(n) / float64(len(flows)); math.Abs(share-0.2) > 0.01 {
		t.Errorf("%.3f of them moved, want a fifth", share)
	}
}

func TestWhereAWorkflowLivesDoesNotDependOnTheOrderOfTheClusters(t *testing.T) {
	some := clusters(5)
	turned := []cluster{some[3], some[0], some[4], some[2], some[1]}
	for _, f := range accounts(1000, 0) {
		if some[place(f.name, some)].name != turned[place(f.name, turned)].name {
			t.Fatalf("%s", f.name)
		}
	}
}

func TestAClusterHasItsShareByWeight(t *testing.T) {
	some := clusters(3)
	some[1].weight = 2
	for i, want := range []float64{0.25, 0.5, 0.25} {
		if got := loads(accounts(50_000, 0), some)[i]; math.Abs(got-want) > 0.01 {
			t.Errorf("%s has %.3f, want %.2f", some[i].name, got, want)
		}
	}
}
