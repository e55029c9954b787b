{{/* Exoscale SKS. */}}

{{- define "tenon.exoscale.check" -}}
{{- with .Values.exoscale -}}
{{- if not .zone }}{{ fail "\n\nprovider exoscale needs exoscale.zone, such as ch-gva-2" }}{{ end -}}
{{- if not .clusterId }}{{ fail "\n\nprovider exoscale needs exoscale.clusterId, the UUID of the SKS cluster" }}{{ end -}}
{{- with .prices }}{{ if hasKey (fromJson .) "Error" }}{{ fail "\n\nexoscale.prices is no JSON object: give one with an object for each currency, such as {\"EUR\": {\"standard.small\": 0.05}}" }}{{ end }}{{ end -}}
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
- name: EXOSCALE_CURRENCY
  value: {{ .Values.exoscale.currency | quote }}
{{- if .Values.exoscale.prices }}
- name: EXOSCALE_PRICE_FILE
  value: /etc/tenon/prices.json
{{- end }}
{{- end }}

{{- define "tenon.exoscale.volumes" -}}
{{- if .Values.exoscale.prices -}}
- name: prices
  configMap:
    name: {{ include "tenon.fullname" . }}-prices
{{- end }}
{{- end }}

{{- define "tenon.exoscale.volumeMounts" -}}
{{- if .Values.exoscale.prices -}}
- name: prices
  mountPath: /etc/tenon
  readOnly: true
{{- end }}
{{- end }}

{{/* What the controller reads at its start only: other text means other pods. */}}
{{- define "tenon.exoscale.files" -}}{{ .Values.exoscale.prices }}{{- end }}

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
{{- if .Values.exoscale.prices }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $fullname }}-prices
  namespace: {{ .Release.Namespace }}
  {{- include "tenon.metadata" (list . nil) | nindent 2 }}
data:
  prices.json: {{ .Values.exoscale.prices | quote }}
{{- end }}
{{- end }}
