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

// injectManifests reads manifests and returns them with Hooklock in them, and notes for the user.
func injectManifests(in io.Reader, out io.Writer, o options) (notes []string, err error) {
	docs, err := readObjects(in)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var configs, services []*yaml.Node
	namespaces := map[string]bool{}
	for _, doc := range docs {
		w := doc.Content[0]
		if !slices.Contains(workloads, textAt(w, "kind")) {
			continue
		}
		service, err := serviceOf(w, docs, o.Service)
		if err != nil {
			return nil, err
		}
		if service == nil {
			notes = append(notes, objectTitle(w)+" was left alone: no Service among these manifests selects its pods")
			continue
		}
		said, err := injectWorkload(w, service, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", objectTitle(w), err)
		}
		notes = append(notes, said...)
		services = append(services, service)
		if namespace := textAt(w, "metadata", "namespace"); o.Config != nil && !namespaces[namespace] {
			namespaces[namespace] = true
			configs = append(configs, configMap(namespace, o.Config))
		}
	}
	if len(services) == 0 {
		return nil, errors.New("no Deployment, StatefulSet or DaemonSet with a Service that selects its pods: give " +
			"the files of both")
	}
	notes = append(notes, redirectServices(services)...) // after all workloads, because a canary shares a Service
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	for _, doc := range append(docs, configs...) {
		if err := e.Encode(doc); err != nil {
			return nil, fmt.Errorf("write manifests: %w", err)
		}
	}
	return notes, e.Close()
}

// redirectServices points services at Hooklock.
func redirectServices(services []*yaml.Node) (notes []string) {
	for i, service := range services {
		if textAt(service, "spec", "clusterIP") == "None" && !slices.Contains(services[:i], service) {
			notes = append(notes, objectTitle(service)+" is headless: a client that resolves its name connects to the "+
				"ports of the pods themselves, past Hooklock; "+
				"give senders inside of the cluster one with a clusterIP")
		}
		setKey(mappingAt(mappingAt(service, "metadata"), "labels"), "hooklock", stringNode("service"))
		setKey(listAt(service, "spec", "ports")[0], "targetPort", stringNode("hooklock"))
	}
	return notes
}

// readObjects returns the objects of manifests, each as a document, items of lists included.
func readObjects(in io.Reader) (docs []*yaml.Node, err error) {
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
		if hasAlias(object) && slices.Contains(append([]string{"Service", "List"}, workloads...),
			textAt(object, "kind")) {
			var value any // the decoder refuses circles, and aliases that grow without end
			if err := object.Decode(&value); err != nil {
				return nil, err
			}
			doc.Content[0] = withoutAliases(object)
		}
		if textAt(object, "kind") != "List" {
			docs = append(docs, &doc)
			continue
		}
		for _, item := range listAt(doc.Content[0], "items") {
			if item.Kind == yaml.MappingNode {
				docs = append(docs, &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{item}})
			}
		}
	}
}

func objectTitle(object *yaml.Node) string {
	return textAt(object, "kind") + " " + textAt(object, "metadata", "name")
}

// serviceOf returns the Service that selects the pods of a workload, or nil.
func serviceOf(w *yaml.Node, docs []*yaml.Node, name string) (*yaml.Node, error) {
	var found []*yaml.Node
	var names []string
	for _, doc := range docs {
		s := doc.Content[0]
		if textAt(s, "kind") != "Service" || textAt(s, "metadata", "namespace") != textAt(w, "metadata", "namespace") ||
			!isSelectedBy(s, w) {
			continue
		}
		if name == "" || textAt(s, "metadata", "name") == name {
			found = append(found, s)
		}
		names = append(names, textAt(s, "metadata", "name"))
	}
	switch {
	case len(found) > 1:
		return nil, fmt.Errorf("%s is selected by the Services %s: say with --service which one takes deliveries",
			objectTitle(w), strings.Join(names, ", "))
	case len(found) == 0:
		return nil, nil //nolint:nilnil // there may be none
	}
	return found[0], nil
}

func isSelectedBy(service, w *yaml.Node) bool {
	selector := nodeAt(service, "spec", "selector")
	if selector == nil || len(selector.Content) == 0 {
		return false
	}
	for i := 0; i+1 < len(selector.Content); i += 2 {
		label := nodeAt(w, "spec", "template", "metadata", "labels", selector.Content[i].Value)
		if label == nil || label.Value != resolveAlias(selector.Content[i+1]).Value {
			return false
		}
	}
	return true
}

// targetPort returns the port that the Service targets, and its container.
func targetPort(service, pod *yaml.Node) (port int, container *yaml.Node, err error) {
	ports := listAt(service, "spec", "ports")
	if len(ports) == 0 {
		return 0, nil, fmt.Errorf("the Service %s has no ports", textAt(service, "metadata", "name"))
	}
	wanted := cmp.Or(textAt(ports[0], "targetPort"), textAt(ports[0], "port"))
	containers := listAt(pod, "containers")
	for _, c := range containers {
		for _, p := range listAt(c, "ports") {
			if textAt(p, "name") == wanted || textAt(p, "containerPort") == wanted {
				port, err = strconv.Atoi(textAt(p, "containerPort"))
				return port, c, err
			}
		}
	}
	port, err = strconv.Atoi(wanted)
	switch {
	case wanted == "hooklock":
		return 0, nil, fmt.Errorf("the Service %s leads to Hooklock already: give the manifests as they were before",
			textAt(service, "metadata", "name"))
	case err != nil:
		return 0, nil, fmt.Errorf("the Service %s leads to the port %q, which no container has",
			textAt(service, "metadata", "name"), wanted)
	case port < 1 || port > 65535:
		return 0, nil, fmt.Errorf("the Service %s leads to port %d, which is none", textAt(service, "metadata", "name"),
			port)
	case len(containers) != 1:
		return 0, nil, fmt.Errorf("no container says that it listens on port %d, to which the Service %s leads: "+
			"write it under `ports` of the one that does", port, textAt(service, "metadata", "name"))
	}
	return port, containers[0], nil
}

// injectWorkload puts Hooklock into the pods of a workload, in front of the port that the Service
// targets.
func injectWorkload(w, service *yaml.Node, o options) (notes []string, err error) {
	template := nodeAt(w, "spec", "template")
	pod := nodeAt(template, "spec")
	if pod == nil || len(listAt(pod, "containers")) == 0 {
		return nil, errors.New("has no containers")
	}
	port, container, err := targetPort(service, pod)
	if err != nil {
		return nil, err
	}
	for _, c := range append(listAt(pod, "initContainers"), listAt(pod, "containers")...) {
		if textAt(c, "name") == "hooklock" {
			return nil, errors.New("has a container named hooklock already: give the manifests as they were before")
		}
		for _, p := range listAt(c, "ports") {
			if slices.Contains([]string{"18078", "18079", "18080"}, textAt(p, "containerPort")) {
				return nil, fmt.Errorf("the container %s has port %s, which Hooklock needs: all containers of a pod "+
					"share their ports", textAt(c, "name"), textAt(p, "containerPort"))
			}
		}
	}
	if err := addSidecar(pod, port, o.Image); err != nil {
		return nil, err
	}
	setKey(mappingAt(mappingAt(template, "metadata"), "labels"), "hooklock", stringNode("sidecar"))
	if o.Config != nil {
		setKey(mappingAt(mappingAt(template, "metadata"), "annotations"), "hooklock-config",
			stringNode(fmt.Sprintf("%x", sha256.Sum256(o.Config))))
	}
	if patience, err := strconv.Atoi(textAt(pod, "terminationGracePeriodSeconds")); err != nil || patience < 60 {
		setKey(pod, "terminationGracePeriodSeconds", numberNode(60))
	}
	if nodeAt(container, "lifecycle", "preStop") == nil {
		setKey(mappingAt(mappingAt(mappingAt(container, "lifecycle"), "preStop"), "sleep"), "seconds", numberNode(10))
	} else {
		notes = append(notes, objectTitle(w)+": the container "+textAt(container, "name")+
			" has a preStop hook of its own: see that it waits for ten seconds")
	}
	if o.FirstRollout {
		notes = append(notes, makePatient(w)...)
	}
	return notes, nil
}

// addSidecar adds the container and the volumes of the component in deploy/kubernetes.
func addSidecar(pod *yaml.Node, port int, image string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(kubernetes.Container, &doc); err != nil {
		return fmt.Errorf("read the container: %w", err)
	}
	spec := nodeAt(dropComments(doc.Content[0]), "spec", "template", "spec")
	c := listAt(spec, "initContainers")[0]
	setKey(c, "image", stringNode(image))
	for _, e := range listAt(c, "env") {
		if textAt(e, "name") == "HOOKLOCK__UPSTREAM__URL" {
			setKey(e, "value", stringNode("http://127.0.0.1:"+strconv.Itoa(port)))
		}
	}
	addItems(pod, "initContainers", true, c)
	addItems(pod, "volumes", false, listAt(spec, "volumes")...)
	return nil
}

// makePatient does the same as deploy/kubernetes/first-rollout.
func makePatient(w *yaml.Node) []string {
	if textAt(w, "kind") != "Deployment" {
		return []string{objectTitle(w) +
			": only a Deployment can keep its old pods beside the new ones: deliveries to " +
			"pods that end may be lost this time"}
	}
	spec := nodeAt(w, "spec")
	setKey(spec, "minReadySeconds", numberNode(60))
	strategy := &yaml.Node{Kind: yaml.MappingNode}
	setKey(strategy, "type", stringNode("RollingUpdate"))
	setKey(mappingAt(strategy, "rollingUpdate"), "maxSurge", stringNode("100%"))
	setKey(mappingAt(strategy, "rollingUpdate"), "maxUnavailable", numberNode(0))
	setKey(spec, "strategy", strategy)
	return nil
}

func configMap(namespace string, config []byte) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	setKey(m, "apiVersion", stringNode("v1"))
	setKey(m, "kind", stringNode("ConfigMap"))
	setKey(mappingAt(m, "metadata"), "name", stringNode("hooklock"))
	if namespace != "" {
		setKey(mappingAt(m, "metadata"), "namespace", stringNode(namespace))
	}
	value := stringNode(string(config))
	value.Style = yaml.LiteralStyle
	setKey(mappingAt(m, "data"), "sidecar.yaml", value)
	return m
}
