package sender

import (
	"hooklock/idem/naming"
)

// DeliveryOf returns m as a Delivery. It shares m's memory.
func DeliveryOf(m *naming.Message) Delivery {
	return Delivery{Method: m.Method, Target: m.Target, Fields: m.Fields, Body: m.Body}
}

// Extractor returns ExtractID as a naming.Extractor, or nil if the preset has a template.
func (p *Preset) Extractor() naming.Extractor {
	if p.ExtractID == nil {
		return nil
	}
	extract := p.ExtractID
	return func(m *naming.Message) naming.Extracted {
		d := DeliveryOf(m)
		id := extract(&d)
		return naming.Extracted{Values: id.Parts, Source: id.Source, Ambiguous: id.Status == IDAmbiguous}
	}
}
