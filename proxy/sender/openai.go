package sender

// OpenAI returns the preset of OpenAI.
func (known) OpenAI() Preset {
	p := standardBy("openai", Facts{})
	p.Page = Page{
		Title: "OpenAI", Workflow: `openai/{body.data.id ?? "other"}`,
		Secret: "The signing secret of the webhook endpoint, `whsec_` included. OpenAI shows it once, when you " +
			"create that.",
		SampleID: "msg_one",
	}
	p.Sources = []string{"https://platform.openai.com/docs/guides/webhooks", "openai (npm) 6.49.0"}
	p.Notes = []string{
		"Signs as [Standard Webhooks](standard-webhooks.md).",
	}
	return p
}
