package sender

// Clerk returns the preset of Clerk.
func (known) Clerk() Preset {
	p := standardBy("clerk", svixFacts())
	p.Page = Page{
		Title: "Clerk", Workflow: `clerk/{body.data.id ?? "other"}`,
		Secret:   "The signing secret of the endpoint (`whsec_…`), from the Clerk Dashboard.",
		SampleID: "msg_one",
	}
	p.Sources = []string{"https://clerk.com/docs/guides/development/webhooks/overview", "https://docs.svix.com/retries"}
	p.Notes = []string{
		"Clerk sends through Svix, with Svix's header names; the 15 s and the retries are Svix's.",
		"Each endpoint has its own secret and gets the same event ID: give each its own route.",
	}
	return p
}
