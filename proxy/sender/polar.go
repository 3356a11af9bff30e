package sender

// Polar returns the preset of Polar.
func (known) Polar() Preset {
	p := standardBy("polar", Facts{})
	p.Page = Page{
		Title: "Polar", Workflow: `polar/{body.data.id ?? "other"}`,
		Secret:   "The secret of the webhook endpoint, letter for letter; it is not base64.",
		SampleID: "msg_one",
	}
	p.Sources = []string{"https://polar.sh/docs/integrate/webhooks/delivery", "@polar-sh/sdk 0.49.0"}
	p.Notes = []string{
		"Signs as [Standard Webhooks](standard-webhooks.md).",
	}
	return p
}
