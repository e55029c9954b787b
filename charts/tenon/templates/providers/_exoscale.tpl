{{/* Exoscale SKS. */}}

{{- define "tenon.exoscale.check" -}}
{{- with .Values.exoscale -}}
{{- if not .zone }}{{ fail "\n\nprovider exoscale needs exoscale.zone, such as ch-gva-2" }}{{ end -}}
{{- if not .clusterId }}{{ fail "\n\nprovider exoscale needs exoscale.clusterId, the UUID of the SKS cluster" }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "tenon.exoscale.env" -}}
- name: EXOSCALE_ZONE
  value: {{ .Values.exoscale.zone | quote }}
- name: EXOSCALE_SKS_CLUSTER_ID
  value: {{ .Values.exoscale.clusterId | quote }}
{{- with .Values.exoscale.credentialsSecret }}
{{- range list "EXOSCALE_API_KEY" "EXOSCALE_API_SECRET" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.exoscale.credentialsSecret }}
      key: {{ . }}
{{- end }}
{{- end }}
{{- with .Values.exoscale.instancePrefix }}
- name: EXOSCALE_COMPUTE_INSTANCE_PREFIX
  value: {{ . | quote }}
{{- end }}
- name: CLUSTER_DOMAIN
  value: {{ .Values.exoscale.clusterDomain | quote }}
{{- with .Values.exoscale.clusterEndpoint }}
- name: CLUSTER_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.exoscale.apiEndpoint }}
- name: EXOSCALE_API_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.exoscale.apiEnvironment }}
- name: EXOSCALE_API_ENVIRONMENT
  value: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "tenon.exoscale.volumes" -}}{{- end }}
{{- define "tenon.exoscale.volumeMounts" -}}{{- end }}

{{- define "tenon.exoscale.clusterRoleRules" -}}
- apiGroups: [karpenter.exoscale.com]
  resources: [exoscalenodeclasses]
  verbs: [get, list, watch, patch]
- apiGroups: [karpenter.exoscale.com]
  resources: [exoscalenodeclasses/status]
  verbs: [patch]
# A node is known before its machine has booted.
- apiGroups: ['']
  resources: [nodes]
  verbs: [create]
{{- end }}

{{/* Objects beside those that every provider has. */}}
{{- define "tenon.exoscale.objects" -}}
{{- $fullname := include "tenon.fullname" . -}}
# Bootstrap tokens are Secrets of kube-system, and only there.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $fullname }}-bootstrap
  namespace: kube-system
  {{- include "tenon.metadata" (list . nil) | nindent 2 }}
rules:
  - apiGroups: ['']
    resources: [secrets]
    verbs: [list, create, delete]
  - apiGroups: ['']
    resources: [configmaps]
    resourceNames: [kube-root-ca.crt]
    verbs: [get]
---
{{ include "tenon.roleBinding" (list . (printf "%s-bootstrap" $fullname) "kube-system") }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $fullname }}-cluster-info
  namespace: kube-public
  {{- include "tenon.metadata" (list . nil) | nindent 2 }}
rules:
  - apiGroups: ['']
    resources: [configmaps]
    resourceNames: [cluster-info]
    verbs: [get]
---
{{ include "tenon.roleBinding" (list . (printf "%s-cluster-info" $fullname) "kube-public") }}
{{- end }}
