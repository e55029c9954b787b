{{/* Simulated nodes: real Node objects that nothing runs behind but KWOK. */}}

{{- define "tenon.kwok.check" -}}{{- end }}

{{- define "tenon.kwok.env" -}}
- name: KWOK_PARTITIONS
  value: {{ join "," .Values.kwok.partitions | quote }}
{{- if .Values.kwok.instanceTypes }}
- name: INSTANCE_TYPES_FILE_PATH
  value: /etc/tenon/instance-types.json
{{- end }}
{{- end }}

{{- define "tenon.kwok.volumes" -}}
{{- if .Values.kwok.instanceTypes -}}
- name: instance-types
  configMap:
    name: {{ include "tenon.fullname" . }}-instance-types
{{- end }}
{{- end }}

{{- define "tenon.kwok.volumeMounts" -}}
{{- if .Values.kwok.instanceTypes -}}
- name: instance-types
  mountPath: /etc/tenon
  readOnly: true
{{- end }}
{{- end }}

{{/* What the controller reads at its start only: other text means other pods. */}}
{{- define "tenon.kwok.files" -}}{{ .Values.kwok.instanceTypes }}{{- end }}

{{- define "tenon.kwok.clusterRoleRules" -}}
- apiGroups: [karpenter.kwok.sh]
  resources: [kwoknodeclasses]
  verbs: [get, list, watch]
# Nodes are what is launched.
- apiGroups: ['']
  resources: [nodes]
  verbs: [create]
{{- end }}

{{/* Objects beside those that every provider has. */}}
{{- define "tenon.kwok.objects" -}}
{{- if .Values.kwok.instanceTypes -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "tenon.fullname" . }}-instance-types
  namespace: {{ .Release.Namespace }}
  {{- include "tenon.metadata" (list . nil) | nindent 2 }}
data:
  instance-types.json: {{ .Values.kwok.instanceTypes | quote }}
{{- end }}
{{- end }}
