package apiserver

import "sigs.k8s.io/yaml"

// AccountFolder is where a pod's service account is, as the files that ServiceAccount gives.
const AccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// ServiceAccount are the files of a service account, by their names in AccountFolder: with KUBERNETES_SERVICE_HOST and
// KUBERNETES_SERVICE_PORT, they are what a client that runs in a pod goes by. ca is the certificate that it trusts.
func ServiceAccount(token, namespace string, ca []byte) map[string][]byte {
	return map[string][]byte{"token": []byte(token), "namespace": []byte(namespace), "ca.crt": ca}
}

// Kubeconfig is a client's configuration file: KUBECONFIG names it. Without a token, or without a certificate to trust, it has none. client-go
// sends a token to an https URL only.
func Kubeconfig(url, token string, ca []byte) ([]byte, error) {
	cluster := map[string]any{"server": url}
	if ca != nil {
		cluster["certificate-authority-data"] = ca // in base64
	}
	user := map[string]any{}
	if token != "" {
		user["token"] = token
	}
	return yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "enilab",
		"clusters": []any{map[string]any{"name": "enilab", "cluster": cluster}},
		"users":    []any{map[string]any{"name": "enilab", "user": user}},
		"contexts": []any{map[string]any{"name": "enilab", "context": map[string]any{"cluster": "enilab", "user": "enilab"}}}})
}
