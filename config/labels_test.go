package config

import (
	"reflect"
	"strings"
	"testing"

	"hooklock/idem/naming"
)

func TestARouteHasLabelsOfItsOwnAndOfItsPreset(t *testing.T) {
	known := Senders{Presets: []Known{{Name: "post", Settings: map[string]string{"labels.object": "{body.data.id}",
		"labels.shop": "{header.X-Shop}"}}}}
	load := func(labels string, env ...string) (*Loaded, error) {
		text := `routes: [{name: a, path: "/a/{shop}", preset: post, labels: ` + labels + `}]`
		return Load(Source{Path: "sidecar.yaml", Bytes: []byte(text), Senders: known, Env: env})
	}
	loaded, err := load(`{order: "{body.order_number}", shop: "{path.shop}", object: ""}`,
		"HOOKLOCK__ROUTES__0__LABELS__TENANT={host}")
	if err != nil {
		t.Fatal(err)
	}
	want := []naming.LabelSpec{{Name: "order", Template: "{body.order_number}"},
		{Name: "shop", Template: "{path.shop}"}, {Name: "tenant", Template: "{host}"}}
	if got := loaded.Config.Routes[0].Labels.Used(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for labels, want := range map[string]string{
		`{Order: "{body.a}"}`:                           "routes[0].labels.Order: \"Order\": a label's name is 1 to 32 of a-z, 0-9, - and _",
		`{order: "{body.a"}`:                            `routes[0].labels.order: column 1: "{" is not closed`,
		`{order: "{path.x}"}`:                           "routes[0].labels.order: column 2: {path.x}: the route's path captures no {x}",
		`{a: "{body.a}", b: "{body.b}", c: "{body.c}"}`: "routes[0].labels: has 5, with those of the preset; at most 4",
		`{order: 1042}`:                                 "routes[0].labels.order: needs text",
		`[order]`:                                       "routes[0].labels: needs a mapping of name to template",
	} {
		if _, err := load(labels); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", labels, err)
		}
	}
}
