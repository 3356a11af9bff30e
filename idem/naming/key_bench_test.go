package naming

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// deliveryOf is a delivery with a JSON body of about size bytes, its event ID in front and its
// workflow's part at the end.
func deliveryOf(size int) *Message {
	var b bytes.Buffer
	b.WriteString(`{"id":"evt_1NG8Du2eZvKYlo2CUI79vXWy","object":"event","lines":[`)
	for i := 0; b.Len() < size-120; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b,
			`{"id":"il_%d","amount":%d,"description":"A \"fine\" line of an invoice, at its usual length","proration":false}`, i, 100*i)
	}
	b.WriteString(`],"data":{"object":{"customer":"cus_9s6XKzkNRiz8i3"}}}`)
	return &Message{
		Method: []byte("POST"), Path: []byte("/hooks/stripe/acme"), Host: []byte("hooks.example.com"), Body: b.Bytes(),
		Fields: []Field{{[]byte("Content-Type"), []byte("application/json")},
			{[]byte("Stripe-Signature"), []byte("t=1,v1=2")}},
		Vars: []PathVar{{"account", []byte("acme")}},
	}
}

func BenchmarkNamingADelivery(b *testing.B) {
	keys, err := NewKeys(KeySpec{
		Route:    "stripe",
		Workflow: "stripe/{path.account}/{body.data.object.customer}",
		EventID:  "{header.Idempotency-Key ?? body.id}",
	})
	if err != nil {
		b.Fatal(err)
	}
	labelled, err := NewKeys(KeySpec{
		Route: "stripe", Workflow: "stripe/{path.account}/{body.data.object.customer}",
		EventID: "{header.Idempotency-Key ?? body.id}",
		Labels:  []LabelSpec{{"customer", "{body.data.object.customer}"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, kib := range []int{1, 16} {
		for _, of := range []struct {
			name string
			keys *Keys
		}{{"json", keys}, {"labelled", labelled}, {"twins", keys}} {
			b.Run(fmt.Sprintf("%s=%dKiB", of.name, kib), func(b *testing.B) {
				m := deliveryOf(kib << 10)
				b.SetBytes(int64(len(m.Body)))
				b.ReportAllocs()
				for b.Loop() {
					names, err := of.keys.Name(m)
					if err != nil {
						b.Fatal(err)
					}
					if of.name == "twins" {
						of.keys.TwinPrint(m, &names)
					}
				}
			})
		}
	}
}

// BenchmarkXMLOfALargeBody reads one element behind 8 MiB of others.
func BenchmarkXMLOfALargeBody(b *testing.B) {
	keys, err := NewKeys(KeySpec{Route: "orders", Workflow: "orders", EventID: "{xml.order.number}"})
	if err != nil {
		b.Fatal(err)
	}
	line := `<line sku="4711"><text>A line of an order, at its usual length</text><amount>100</amount></line>`
	body := "<order>" + strings.Repeat(line, 8<<20/len(line)) + "<number>4711</number></order>"
	m := &Message{Method: []byte("POST"), Path: []byte("/hooks/orders"), Body: []byte(body),
		Fields: []Field{{[]byte("Content-Type"), []byte("application/xml")}}}
	b.SetBytes(int64(len(m.Body)))
	for b.Loop() {
		name, err := keys.Name(m)
		if err != nil || name.EventID != "4711" {
			b.Fatalf("%q, %v", name.EventID, err)
		}
	}
}
