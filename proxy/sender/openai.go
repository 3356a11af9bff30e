package sender

// OpenAI is the sender of that name.
func (known) OpenAI() Preset {
	p := standardBy("openai", Facts{})
	p.Page = Page{
		Title: "OpenAI", Path: "/hooks/openai", Workflow: `openai/{body.data.id ?? "other"}`,
		Verify:   "secret_file: /etc/hooklock/openai.secret",
		Secret:   "The signing secret of the webhook endpoint, `whsec_` included: it is shown once, when that is made.",
		SampleID: "msg_one",
	}
	p.Sources = []string{"https://platform.openai.com/docs/guides/webhooks", "openai (npm) 6.49.0"}
	p.Notes = []string{
		"Signs as Standard Webhooks: ID, time and body. A copy within the retention is a duplicate.",
		"How long OpenAI waits and goes on trying was not established: a delivery waits its turn, and every refusal is 503.",
	}
	return p
}
