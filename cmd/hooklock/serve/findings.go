package serve

import (
	"hooklock/admin/report"
	"hooklock/idem"
	"hooklock/proxy"
)

// findings lets the report hear of deliveries.
type findings struct{ *report.Tally }

// Delivered implements proxy.Observer.
func (f findings) Delivered(r *proxy.Report) {
	d := report.Delivery{
		Route: r.Route, Decision: r.Decision, Carried: true, MissingID: r.EventIDPart == proxy.PartMissing, Workflow: r.Workflow, Key: r.Key,
		Execution: r.Execution, Code: r.Code, TraceID: r.TraceID, Status: r.Status,
		Members: r.Members,
	}
	if r.Decision == idem.DecisionBypassed {
		d.Decision, d.Carried = r.Would, r.Would == idem.DecisionExecuted
	}
	if r.Signature != proxy.SignatureValid {
		d.Signature = r.Signature
	}
	f.Note(&d)
}

// Passed implements proxy.Observer.
func (findings) Passed(*proxy.Report) {}

// Event implements proxy.Observer.
func (findings) Event(proxy.EventName, *proxy.Report) {}

// setRoutes tells metrics and report which routes there are.
func (s *Service) setRoutes(routes []*proxy.Route) {
	s.telemetry.SetRoutes(routes)
	named := make([]report.Route, 0, len(routes))
	for _, r := range routes {
		named = append(named, report.Route{Name: r.Name, Mode: r.Mode()})
	}
	s.report.SetRoutes(named)
}
