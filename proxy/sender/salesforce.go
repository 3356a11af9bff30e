package sender

import (
	"bytes"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"strings"

	"hooklock/idem"
)

// Salesforce returns the preset of Salesforce (outbound messages).
func (known) Salesforce() Preset {
	return Preset{
		Name: "salesforce", Scheme: "none", ExtractID: salesforceID, IDText: "OrganizationId, and the Id of every Notification", OnMismatch: idem.MismatchReplayUnsigned, Strategy: idem.Wait, Respond: only5xx(),
		Facts: Facts{
			Retries: RetriesAll, RetriesFor: day, UsesAnswer: always, Answer: "only a SOAP body with `<Ack>true</Ack>` says that the message was received",
			RetriesOn: "after everything but an acknowledgement, until a message is 24 hours old", Changes: "the values of the fields; the newest are sent",
		},
		sample: sampleSalesforce,
		Page: Page{
			Title: "Salesforce outbound messages", Path: "/hooks/salesforce", Workflow: "salesforce/{xml.Envelope.Body.notifications.Notification[0].sObject.Id ?? \"other\"}",
			SampleID: "00D000000000001AAA/one",
		},
		Sources: []string{"https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_om_outboundmessaging_understanding.htm",
			"https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_om_outboundmessaging_notifications.htm"},
		Notes: []string{
			"Salesforce offers mutual TLS and its addresses instead of a signature; OrganizationId is only a claim.",
			"Up to 100 notifications come in one message.",
			"Platform events and change data capture are not webhooks.",
		},
	}
}

// salesforceID returns the organisation and the IDs of all notifications. A template could name only one of them.
func salesforceID(d *Delivery) EventID {
	const organisation, notification = "Envelope/Body/notifications/OrganizationId", "Envelope/Body/notifications/Notification/Id"
	const deepest = 5       // depth of an Id; deeper elements never match
	const longest = 4 << 10 // bytes of an Id with surrounding white space
	const nested = 300      // depth limit: a decoder takes 90 times the memory of "<a><a>…"
	var path, parts []string
	var text bytes.Buffer
	organisations := 0
	decoder := xml.NewDecoder(bytes.NewReader(d.Body))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return missingID
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(path) == nested {
				return missingID
			}
			path = append(path, t.Name.Local)
			text.Reset()
		case xml.CharData:
			text.Write(t[:min(len(t), longest+1-text.Len())])
		case xml.EndElement:
			at := strings.Join(path[:min(len(path), deepest+1)], "/")
			if (at == organisation || at == notification) && text.Len() > longest {
				return missingID
			}
			switch at {
			case organisation:
				if organisations++; organisations > 1 {
					return ambiguousID
				}
				parts = append([]string{strings.TrimSpace(text.String())}, parts...)
			case notification:
				parts = append(parts, strings.TrimSpace(text.String()))
			}
			path = path[:len(path)-1]
		}
	}
	switch {
	case organisations == 0 || len(parts) < 2:
		return missingID
	case len(parts) == 2:
		return foundID("salesforce", parts...)
	}
	return batchID("salesforce", [][]string{parts[:1], parts[1:]})
}

func sampleSalesforce(s *sample) error {
	s.request.Body = []byte(`<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>` +
		`<notifications xmlns="http://soap.sforce.com/2005/09/outbound"><OrganizationId>00D000000000001AAA</OrganizationId><ActionId>04k000000000001AAA</ActionId>` +
		`<Notification><Id>` + html.EscapeString(s.id) + `</Id><sObject xmlns:sf="urn:sobject.enterprise.soap.sforce.com"><sf:Id>001000000000001AAA</sf:Id></sObject></Notification>` +
		`</notifications></soapenv:Body></soapenv:Envelope>`)
	s.setType("text/xml; charset=utf-8")
	s.add("SOAPAction", `""`)
	return nil
}
