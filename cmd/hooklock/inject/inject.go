package inject

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"hooklock/deploy/kubernetes"
)

// options selects what is written into the manifests.
type options struct {
	// Image is the name of Hooklock's image.
	Image string
	// Service names the Service for deliveries; empty: each workload has its own.
	Service string
	// Config is sidecar.yaml, which becomes a ConfigMap; nil: there is one already.
	Config []byte
	// FirstRollout keeps the old pods of a Deployment beside the new ones for a minute.
	FirstRollout bool
}

// The kinds that have a template for pods.
var workloads = []string{"Deployment", "StatefulSet", "DaemonSet"}

// inject reads manifests and returns them with Hooklock in them, and notes for the user.
func inject(in io.Reader, out io.Writer, o options) (notes []string, err error) {
	docs, err := read(in)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var configs, services []*yaml.Node
	namespaces := map[string]bool{}
	for _, doc := range docs {
		w := doc.Content[0]
		if !slices.Contains(workloads, text(w, "kind")) {
			continue
		}
		service, err := serviceOf(w, docs, o.Service)
		if err != nil {
			return nil, err
		}
		if service == nil {
			notes = append(notes, title(w)+" was left alone: no Service among these manifests selects its pods")
			continue
		}
		said, err := workload(w, service, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title(w), err)
		}
		notes = append(notes, said...)
		services = append(services, service)
		if namespace := text(w, "metadata", "namespace"); o.Config != nil && !namespaces[namespace] {
			namespaces[namespace] = true
			configs = append(configs, configMap(namespace, o.Config))
		}
	}
	if len(services) == 0 {
		return nil, errors.New("no Deployment, StatefulSet or DaemonSet with a Service that selects its pods: give " +
			"the files of both")
	}
	notes = append(notes, redirect(services)...) // after all workloads, because a canary shares a Service
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	for _, doc := range append(docs, configs...) {
		if err := e.Encode(doc); err != nil {
			return nil, fmt.Errorf("write manifests: %w", err)
		}
	}
	return notes, e.Close()
}

// redirect points services at Hooklock.
func redirect(services []*yaml.Node) (notes []string) {
	for i, service := range services {
		if text(service, "spec", "clusterIP") == "None" && !slices.Contains(services[:i], service) {
			notes = append(notes, title(service)+" is headless: a client that resolves its name connects to the "+
				"ports of the pods themselves, past Hooklock; "+
				"give senders inside of the cluster one with a clusterIP")
		}
		set(under(under(service, "metadata"), "labels"), "hooklock", str("service"))
		set(list(service, "spec", "ports")[0], "targetPort", str("hooklock"))
	}
	return notes
}

// read returns the objects of manifests, each as a document, items of lists included.
func read(in io.Reader) (docs []*yaml.Node, err error) {
	for d := yaml.NewDecoder(in); ; {
		var doc yaml.Node
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			return nil, err
		}
		if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
			continue
		}
		object := doc.Content[0]
		if aliased(object) && slices.Contains(append([]string{"Service", "List"}, workloads...), text(object, "kind")) {
			var value any // the decoder refuses circles, and aliases that grow without end
			if err := object.Decode(&value); err != nil {
				return nil, err
			}
			doc.Content[0] = written(object)
		}
		if text(object, "kind") != "List" {
			docs = append(docs, &doc)
			continue
		}
		for _, item := range list(doc.Content[0], "items") {
			if item.Kind == yaml.MappingNode {
				docs = append(docs, &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{item}})
			}
		}
	}
}

func title(object *yaml.Node) string {
	return text(object, "kind") + " " + text(object, "metadata", "name")
}

// serviceOf returns the Service that selects the pods of a workload, or nil.
func serviceOf(w *yaml.Node, docs []*yaml.Node, name string) (*yaml.Node, error) {
	var found []*yaml.Node
	var names []string
	for _, doc := range docs {
		s := doc.Content[0]
		if text(s, "kind") != "Service" || text(s, "metadata", "namespace") != text(w, "metadata", "namespace") ||
			!selects(s, w) {
			continue
		}
		if name == "" || text(s, "metadata", "name") == name {
			found = append(found, s)
		}
		names = append(names, text(s, "metadata", "name"))
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("%s is selected by the Services %s: say with --service which one takes deliveries",
			title(w), strings.Join(names, ", "))
	case len(found) == 0:
		return nil, nil //nolint:nilnil // there may be none
	}
	return found[0], nil
}

func selects(service, w *yaml.Node) bool {
	selector := get(service, "spec", "selector")
	if selector == nil || len(selector.Content) == 0 {
		return false
	}
	for i := 0; i+1 < len(selector.Content); i += 2 {
		label := get(w, "spec", "template", "metadata", "labels", selector.Content[i].Value)
		if label == nil || label.Value != plain(selector.Content[i+1]).Value {
			return false
		}
	}
	return true
}

// target returns the port that the Service targets, and its container.
func target(service, pod *yaml.Node) (port int, container *yaml.Node, err error) {
	ports := list(service, "spec", "ports")
	if len(ports) == 0 {
		return 0, nil, fmt.Errorf("the Service %s has no ports", text(service, "metadata", "name"))
	}
	wanted := cmp.Or(text(ports[0], "targetPort"), text(ports[0], "port"))
	containers := list(pod, "containers")
	for _, c := range containers {
		for _, p := range list(c, "ports") {
			if text(p, "name") == wanted || text(p, "containerPort") == wanted {
				port, err = strconv.Atoi(text(p, "containerPort"))
				return port, c, err
			}
		}
	}
	port, err = strconv.Atoi(wanted)
	switch {
	case wanted == "hooklock":
		return 0, nil, fmt.Errorf("the Service %s leads to Hooklock already: give the manifests as they were before",
			text(service, "metadata", "name"))
	case err != nil:
		return 0, nil, fmt.Errorf("the Service %s leads to the port %q, which no container has",
			text(service, "metadata", "name"), wanted)
	case port < 1 || port > 65535:
		return 0, nil, fmt.Errorf("the Service %s leads to port %d, which is none", text(service, "metadata", "name"),
			port)
	case len(containers) != 1:
		return 0, nil, fmt.Errorf("no container says that it listens on port %d, to which the Service %s leads: "+
			"write it under `ports` of the one that does", port, text(service, "metadata", "name"))
	}
	return port, containers[0], nil
}

// workload puts Hooklock into the pods of a workload, in front of the port that the Service
// targets.
func workload(w, service *yaml.Node, o options) (notes []string, err error) {
	template := get(w, "spec", "template")
	pod := get(template, "spec")
	if pod == nil || len(list(pod, "containers")) == 0 {
		return nil, errors.New("has no containers")
	}
	port, container, err := target(service, pod)
	if err != nil {
		return nil, err
	}
	for _, c := range append(list(pod, "initContainers"), list(pod, "containers")...) {
		if text(c, "name") == "hooklock" {
			return nil, errors.New("has a container named hooklock already: give the manifests as they were before")
		}
		for _, p := range list(c, "ports") {
			if slices.Contains([]string{"18078", "18079", "18080"}, text(p, "containerPort")) {
				return nil, fmt.Errorf("the container %s has port %s, which Hooklock needs: all containers of a pod "+
					"share their ports", text(c, "name"), text(p, "containerPort"))
			}
		}
	}
	if err := sidecar(pod, port, o.Image); err != nil {
		return nil, err
	}
	set(under(under(template, "metadata"), "labels"), "hooklock", str("sidecar"))
	if o.Config != nil {
		set(under(under(template, "metadata"), "annotations"), "hooklock-config",
			str(fmt.Sprintf("%x", sha256.Sum256(o.Config))))
	}
	if patience, err := strconv.Atoi(text(pod, "terminationGracePeriodSeconds")); err != nil || patience < 60 {
		set(pod, "terminationGracePeriodSeconds", number(60))
	}
	if get(container, "lifecycle", "preStop") == nil {
		set(under(under(under(container, "lifecycle"), "preStop"), "sleep"), "seconds", number(10))
	} else {
		notes = append(notes, title(w)+": the container "+text(container, "name")+
			" has a preStop hook of its own: see that it waits for ten seconds")
	}
	if o.FirstRollout {
		notes = append(notes, patient(w)...)
	}
	return notes, nil
}

// sidecar adds the container and the volumes of the component in deploy/kubernetes.
func sidecar(pod *yaml.Node, port int, image string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(kubernetes.Container, &doc); err != nil {
		return fmt.Errorf("read the container: %w", err)
	}
	spec := get(bare(doc.Content[0]), "spec", "template", "spec")
	c := list(spec, "initContainers")[0]
	set(c, "image", str(image))
	for _, e := range list(c, "env") {
		if text(e, "name") == "HOOKLOCK__UPSTREAM__URL" {
			set(e, "value", str("http://127.0.0.1:"+strconv.Itoa(port)))
		}
	}
	add(pod, "initContainers", true, c)
	add(pod, "volumes", false, list(spec, "volumes")...)
	return nil
}

// patient does the same as deploy/kubernetes/first-rollout.
func patient(w *yaml.Node) []string {
	if text(w, "kind") != "Deployment" {
		return []string{title(w) + ": only a Deployment can keep its old pods beside the new ones: deliveries to " +
			"pods that end may be lost this time"}
	}
	spec := get(w, "spec")
	set(spec, "minReadySeconds", number(60))
	strategy := &yaml.Node{Kind: yaml.MappingNode}
	set(strategy, "type", str("RollingUpdate"))
	set(under(strategy, "rollingUpdate"), "maxSurge", str("100%"))
	set(under(strategy, "rollingUpdate"), "maxUnavailable", number(0))
	set(spec, "strategy", strategy)
	return nil
}

func configMap(namespace string, config []byte) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	set(m, "apiVersion", str("v1"))
	set(m, "kind", str("ConfigMap"))
	set(under(m, "metadata"), "name", str("hooklock"))
	if namespace != "" {
		set(under(m, "metadata"), "namespace", str(namespace))
	}
	value := str(string(config))
	value.Style = yaml.LiteralStyle
	set(under(m, "data"), "sidecar.yaml", value)
	return m
}
