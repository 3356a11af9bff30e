package sender

// Resend is the sender of that name.
func (known) Resend() Preset {
	p := standardBy("resend", svix())
	p.Page = Page{
		Title: "Resend", Path: "/hooks/resend", Workflow: `resend/{body.data.email_id ?? body.data.id ?? "other"}`,
		Verify:   "secret_file: /etc/hooklock/resend.secret",
		Secret:   "The signing secret of the webhook (`whsec_…`), from its page.",
		SampleID: "msg_one",
	}
	p.Sources = []string{"https://resend.com/docs/webhooks/retries-and-replays", "https://docs.svix.com/retries"}
	p.Notes = []string{
		"Resend sends through Svix, with Svix's names of the headers. ID, time and body are signed; a copy within the retention is a duplicate.",
		"The retries are documented by Resend, the 15 s by Svix. A replay by hand keeps its ID and gets the first answer: `hooklock executions forget` lets the event run again.",
	}
	return p
}
