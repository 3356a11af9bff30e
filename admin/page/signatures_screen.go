package page

import (
	"hooklock/admin/client"
)

// signaturePage is the number of bad signatures on a screen.
const signaturePage = 100

// signaturesScreen lists deliveries whose signature was not valid.
func signaturesScreen(v *visit) ([]section, error) {
	fields := []input{
		{Name: "route", Label: "Route", Main: true},
		{Name: "event", Label: "Event ID"},
		{Name: "since", Label: "Since", Hint: "24h, or a time"},
		{Name: "until", Label: "Until"},
	}
	pairs := v.fillFields(fields, signaturePage)
	s := section{
		ID: "signatures", Title: "Bad signatures", Search: &search{"signatures", fields},
		Empty: "No delivery had a bad signature.",
		Note: "Of the last 30 days, on all replicas. Of many at once few are listed, and the others are counted. " +
			"Nothing " +
			"proves an event ID here.",
	}
	page, err := readObject[client.BadSignaturePage](v, "/v1/signatures", pairs...)
	if err != nil {
		return s.aloneWithout(err, "Not known: etcd does not answer.")
	}
	s.Count, s.Table = len(page.BadSignatures), signatureTable(page.BadSignatures)
	if page.NextCursor != "" {
		s.Next = append(s.Next, link{"Older", screenLink("signatures", v.queryWith("cursor", page.NextCursor)...)})
	}
	return []section{s}, nil
}

func signatureTable(all []client.BadSignature) *table {
	if len(all) == 0 {
		return nil
	}
	return lineTable("Bad signatures", []column[client.BadSignature]{
		{"When", func(b *client.BadSignature) cell { return timeCell(b.At, "at") }},
		{"Route", func(b *client.BadSignature) cell { return textCell(b.Route) }},
		{"From", func(b *client.BadSignature) cell { return textCell(b.From) }},
		{"Wrong", func(b *client.BadSignature) cell { return cell{Text: b.Reason, Class: "warn", Title: b.Part} }},
		{"Why", func(b *client.BadSignature) cell {
			return cell{Text: b.Part + ": " + b.Detail, Title: b.Part + ": " + b.Detail}
		}},
		{"Event ID", func(b *client.BadSignature) cell { return middleCutCell(b.EventID) }},
		{"Sender got", func(b *client.BadSignature) cell { return numberCell(int64(b.Status)) }},
		{"And more", func(b *client.BadSignature) cell {
			c := numberCell(b.More)
			c.Title = "of the route, which came so soon after it that they are not listed"
			return c
		}},
		{"Trace", func(b *client.BadSignature) cell {
			return cell{Text: b.TraceID[:min(8, len(b.TraceID))], Class: "id", Title: b.TraceID}
		}},
	}, all)
}

// claimedSection returns the deliveries that say an event ID and had no valid signature; route may
// be "".
func (v *visit) claimedSection(route, eventID string) (s section, found bool) {
	page, err := readObject[client.BadSignaturePage](v, "/v1/signatures", "route", route, "event", eventID, "limit",
		"20")
	if err != nil || len(page.BadSignatures) == 0 {
		return s, false
	}
	return section{
		ID: "signatures", Title: "Came with a bad signature", Table: signatureTable(page.BadSignatures),
		Note: "This came with the event ID and without a valid signature, so it did not run. Anyone can write an ID " +
			"into a request.",
	}, true
}
