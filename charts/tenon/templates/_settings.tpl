{{/* Each selector of NodePools has a lease of its own; the controller builds the same name. */}}
{{- define "tenon.leaseName" -}}
{{- $name := .Values.settings.leaderElectionName -}}
{{- with .Values.settings.nodePools }}{{ printf "%s-%s" $name (sha256sum . | trunc 8) }}{{ else }}{{ $name }}{{ end -}}
{{- end }}

{{/* Every gate with a value: one without would end the start. */}}
{{- define "tenon.featureGates" -}}
{{- $gates := list -}}
{{- range $name, $value := .Values.settings.featureGates -}}
{{- $isOn := $value | toString -}}
{{- if eq $value nil -}}{{- $isOn = "false" -}}{{- end -}}
{{- if eq $name "capacityBuffer" -}}{{- $isOn = include "tenon.capacityBuffer" $ -}}{{- end -}}
{{- $gates = append $gates (printf "%s=%s" (title $name) $isOn) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end }}

{{/* Whether CapacityBuffers keep room: `auto` leaves it to the compatibility mode. */}}
{{- define "tenon.capacityBuffer" -}}
{{- $value := .Values.settings.featureGates.capacityBuffer | toString -}}
{{- if has $value (list "true" "false") -}}{{ $value }}{{- else -}}{{ ne .Values.settings.compatibility "karpenter" }}{{- end -}}
{{- end }}

{{/* Whether pods with resource claims get nodes: `auto` leaves it to the compatibility mode, and then to the cluster. */}}
{{- define "tenon.readsDevices" -}}
{{- $value := .Values.settings.ignoreDRARequests | toString -}}
{{- if has $value (list "true" "false") -}}{{ eq $value "false" }}{{- else -}}{{ ne .Values.settings.compatibility "karpenter" }}{{- end -}}
{{- end }}

{{/* Text of the scheduler configuration; empty without one. */}}
{{- define "tenon.schedulerConfig" -}}
{{- with .Values.settings.schedulerConfig -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toYaml . }}{{ end -}}
{{- end -}}
{{- end }}

{{/* All variables. Those of `controller.env` come last and take the place of the chart's own of the same
     name: twice in the list, server-side apply would refuse them. */}}
{{- define "tenon.env" -}}
{{- $names := list -}}
{{- range .Values.controller.env }}{{ $names = append $names .name }}{{ end -}}
{{- $all := list -}}
{{- range include "tenon.ownEnv" . | fromYamlArray -}}
{{- if not (has .name $names) }}{{ $all = append $all . }}{{ end -}}
{{- end -}}
{{- toYaml (concat $all .Values.controller.env) -}}
{{- end }}

{{- define "tenon.tracing" -}}
{{- with .Values.tracing }}
{{- if .endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
{{- with .serviceName }}
- name: OTEL_SERVICE_NAME
  value: {{ . | quote }}
{{- end }}
{{- with .resourceAttributes }}
{{- $pairs := list }}
{{- range $name, $value := . }}
{{- $pairs = append $pairs (printf "%s=%s" $name ($value | toString | urlquery | replace "+" "%20")) }}
{{- end }}
- name: OTEL_RESOURCE_ATTRIBUTES
  value: {{ join "," $pairs | quote }}
{{- end }}
{{- if lt (float64 .sampleRatio) 1.0 }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ .sampleRatio | quote }}
{{- end }}
{{- with .headersSecret }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: headers
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tenon.ownEnv" -}}
- name: LOG_LEVEL
  value: {{ .Values.logLevel | quote }}
{{- with .Values.logOutputPaths }}
- name: LOG_OUTPUT_PATHS
  value: {{ . | quote }}
{{- end }}
{{- with .Values.logErrorOutputPaths }}
- name: LOG_ERROR_OUTPUT_PATHS
  value: {{ . | quote }}
{{- end }}
{{- include "tenon.tracing" . }}
- name: METRICS_PORT
  value: {{ .Values.controller.metrics.port | quote }}
{{- if .Values.controller.metrics.certificateSecret }}
- name: METRICS_SECURE
  value: "true"
- name: METRICS_CERT_PATH
  value: /etc/tenon-metrics
{{- end }}
- name: HEALTH_PROBE_PORT
  value: {{ .Values.controller.healthProbe.port | quote }}
- name: DEBUG_PORT
  value: {{ .Values.controller.debug.port | quote }}
- name: MAX_CONNECTIONS
  value: {{ .Values.controller.maxConnections | quote }}
- name: LEADER_ELECTION_NAME
  value: {{ .Values.settings.leaderElectionName | quote }}
- name: LEADER_ELECTION_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: DISABLE_LEADER_ELECTION
  value: {{ .Values.settings.disableLeaderElection | quote }}
- name: MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      containerName: controller
      divisor: '0'
      resource: limits.memory
{{- with include "tenon.nodeOptions" .Values.controller.resources }}
- name: NODE_OPTIONS
  value: {{ . }}
{{- end }}
- name: CPU_REQUESTS
  valueFrom:
    resourceFieldRef:
      containerName: controller
      divisor: 1m
      resource: requests.cpu
- name: FEATURE_GATES
  value: {{ include "tenon.featureGates" . | quote }}
- name: BATCH_MAX_DURATION
  value: {{ .Values.settings.batchMaxDuration | quote }}
- name: BATCH_IDLE_DURATION
  value: {{ .Values.settings.batchIdleDuration | quote }}
- name: INITIALIZATION_TIMEOUT
  value: {{ .Values.settings.initializationTimeout | quote }}
- name: PROVISIONING_REQUEST_BOOKING_DURATION
  value: {{ .Values.settings.provisioningRequestBookingDuration | quote }}
- name: PREFERENCE_POLICY
  value: {{ .Values.settings.preferencePolicy | quote }}
- name: MIN_VALUES_POLICY
  value: {{ .Values.settings.minValuesPolicy | quote }}
- name: IGNORE_DRA_REQUESTS
  value: {{ .Values.settings.ignoreDRARequests | quote }}
- name: VPA_PREDICTIONS
  value: {{ .Values.settings.vpaPredictions | quote }}
{{- if ne (toString .Values.settings.surgeOnDrain) "false" }}
- name: SURGE_ON_DRAIN
  value: {{ .Values.settings.surgeOnDrain | quote }}
{{- end }}
{{- if .Values.settings.podDeletionCost }}
- name: POD_DELETION_COST
  value: "true"
{{- end }}
- name: COMPATIBILITY
  value: {{ .Values.settings.compatibility | quote }}
- name: DISABLE_CLUSTER_STATE_OBSERVABILITY
  value: {{ .Values.settings.disableClusterStateObservability | quote }}
- name: ENABLE_PROFILING
  value: {{ .Values.settings.enableProfiling | quote }}
{{- if .Values.settings.observeOnly }}
- name: OBSERVE_ONLY
  value: "true"
{{- end }}
{{- if .Values.settings.takeOver }}
- name: TAKE_OVER
  value: "true"
{{- end }}
{{- with .Values.settings.nodePools }}
- name: NODE_POOLS
  value: {{ . | quote }}
{{- end }}
{{- with .Values.settings.journalPath }}
- name: JOURNAL_PATH
  value: {{ . | quote }}
{{- end }}
{{- with .Values.settings.recordPath }}
- name: RECORD_PATH
  value: {{ . | quote }}
{{- end }}
{{- with .Values.settings.kubeClientQPS }}
- name: KUBE_CLIENT_QPS
  value: {{ . | quote }}
{{- end }}
{{- with .Values.settings.kubeClientBurst }}
- name: KUBE_CLIENT_BURST
  value: {{ . | quote }}
{{- end }}
{{- with include "tenon.schedulerConfig" . }}
- name: SCHEDULER_CONFIG
  value: {{ . | quote }}
{{- end }}
{{- with include "tenon.providerEnv" . }}
{{ . }}
{{- end }}
{{- end }}

{{/* The heap gets three quarters of the memory limit: buffers and code are outside of it. Empty without a limit. */}}
{{- define "tenon.nodeOptions" -}}
{{- $limits := (. | default dict).limits | default dict -}}
{{- $limit := ternary (printf "%.0f" $limits.memory) (toString (default "" $limits.memory)) (kindIs "float64" $limits.memory) -}}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)?([KMG]i|[kMG])?$" $limit -}}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $bytes := mulf (float64 (regexFind "^[0-9.]+" $limit)) (get $factors (regexFind "[A-Za-z]*$" $limit)) -}}
--max-old-space-size={{ divf (mulf $bytes 0.75) 1048576 | floor | int }}
{{- end -}}
{{- end }}
