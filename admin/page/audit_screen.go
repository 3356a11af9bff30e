package page

import (
	"net"

	"hooklock/admin/client"
)

// auditPage is the number of audits on a screen.
const auditPage = 100

// auditScreen lists the changes: by whom, when and why.
func auditScreen(v *visit) ([]section, error) {
	fields := []input{
		{Name: "execution", Label: "Execution", Main: true},
		{Name: "who", Label: "Who"},
		{Name: "what", Label: "What begins with", Hint: "execution. or lock."},
		{Name: "workflow", Label: "Workflow", Hint: "orders/acme, or orders/*"},
		{Name: "since", Label: "Since", Hint: "24h, or a time"},
		{Name: "until", Label: "Until"},
	}
	pairs := v.fillFields(fields, auditPage)
	s := section{
		ID: "audits", Title: "Audit", Search: &search{"audit", fields},
		Empty: "No one has changed anything in 30 days.",
		Note: "Changes of the last 30 days, on all replicas, done or refused. The log also has those of clients of " +
			"the lock API.",
	}
	page, err := readObject[client.AuditPage](v, "/v1/audit", pairs...)
	if err != nil {
		return s.aloneWithout(err, "Not known: etcd does not answer. The log of each replica has its own changes.")
	}
	if s.Count = len(page.Audits); s.Count > 0 {
		s.Table = lineTable("Changes", auditColumns(), page.Audits)
	}
	if page.NextCursor != "" {
		s.Links = append(s.Links, link{"Older", screenLink("audit", v.queryWith("cursor", page.NextCursor)...)})
	}
	return []section{s}, nil
}

// auditColumns show an audit.
func auditColumns() []column[client.Audit] {
	return []column[client.Audit]{
		{"When", func(a *client.Audit) cell { return timeCell(a.At, "at") }},
		{"Who", func(a *client.Audit) cell { return cutCell(a.Who) }},
		{"What", func(a *client.Audit) cell { return textCell(a.What) }},
		{"Why", func(a *client.Audit) cell { return titledCell(a.Why) }},
		{"Result", func(a *client.Audit) cell {
			c := textCell(a.Result)
			switch {
			case a.Code != "":
				c = cell{Text: a.Result + ": " + a.Code, Class: "warn"}
			case a.Result == "done":
				c.Class = "good"
			}
			return c
		}},
		{"Workflow, event", func(a *client.Audit) cell {
			event := ofExecution(a.ExecutionID)
			if a.Workflow != "" {
				event.Text, event.Title, event.Class = cutCell(a.Workflow).Text, a.Workflow+" "+a.ExecutionID, ""
			}
			return event
		}},
		{"Change", func(a *client.Audit) cell {
			if a.Before == "" {
				return titledCell(a.After)
			}
			return titledCell(a.Before + " → " + a.After)
		}},
		{"From", func(a *client.Audit) cell {
			host, _, err := net.SplitHostPort(a.Remote)
			if err != nil {
				host = a.Remote
			}
			return cell{Text: host, Title: a.Remote}
		}},
	}
}
