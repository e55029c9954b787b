{{/* Binds the service account to a ClusterRole. Arguments: the context and the role's name. */}}
{{- define "tenon.clusterRoleBinding" -}}
{{- $context := index . 0 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ index . 1 }}
  {{- include "tenon.metadata" (list $context nil) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ index . 1 }}
subjects:
  - kind: ServiceAccount
    name: {{ include "tenon.serviceAccountName" $context }}
    namespace: {{ $context.Release.Namespace }}
{{- end }}

{{/* Binds the service account to a Role. Arguments: the context, the role's name and its namespace. */}}
{{- define "tenon.roleBinding" -}}
{{- $context := index . 0 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ index . 1 }}
  namespace: {{ index . 2 }}
  {{- include "tenon.metadata" (list $context nil) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ index . 1 }}
subjects:
  - kind: ServiceAccount
    name: {{ include "tenon.serviceAccountName" $context }}
    namespace: {{ $context.Release.Namespace }}
{{- end }}
