package sender

// Polar is the sender of that name.
func (known) Polar() Preset {
	p := standardBy("polar", Facts{})
	p.Page = Page{
		Title: "Polar", Path: "/hooks/polar", Workflow: `polar/{body.data.id ?? "other"}`,
		Verify:   "secret_file: /etc/hooklock/polar.secret",
		Secret:   "The secret of the webhook endpoint, as Polar shows it: it is no base64, and used letter for letter.",
		SampleID: "msg_one",
	}
	p.Sources = []string{"https://polar.sh/docs/integrate/webhooks/delivery", "@polar-sh/sdk 0.49.0"}
	p.Notes = []string{
		"Signs as Standard Webhooks: ID, time and body. A copy within the retention is a duplicate.",
		"How long Polar waits and goes on trying was not established: a delivery waits its turn, and every refusal is 503.",
	}
	return p
}
