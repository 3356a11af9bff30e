package sender

// Resend returns the preset of Resend.
func (known) Resend() Preset {
	p := standardBy("resend", svixFacts())
	p.Page = Page{
		Title: "Resend", Workflow: `resend/{body.data.email_id ?? body.data.id ?? "other"}`,
		Secret:   "The signing secret of the webhook (`whsec_…`), from its page.",
		SampleID: "msg_one",
	}
	p.Sources = []string{"https://resend.com/docs/webhooks/retries-and-replays", "https://docs.svix.com/retries"}
	p.Notes = []string{
		"Resend sends through Svix, with Svix's header names. Resend documents the retries, Svix the 15 s.",
		"A manual replay keeps its ID.",
	}
	return p
}
