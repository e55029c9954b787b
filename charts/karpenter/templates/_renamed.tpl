{{/* Values of the charts of other providers: one that would be passed over in silence ends the rendering
     with the name it has here. Those of the chart that this provider takes over are none of them. */}}
{{- define "tenon.refuseRenamed" -}}
{{- $renamed := list
  (list "replicaCount" "replicas")
  (list "arguments" "controller.extraArgs, or the value of the setting itself")
  (list "extraArgs" "controller.extraArgs")
  (list "metricsPort" "controller.metrics.port")
  (list "healthProbePort" "controller.healthProbe.port")
  (list "image.repo" "controller.image.repository")
  (list "image.repository" "controller.image.repository")
  (list "image.tag" "controller.image.tag")
  (list "image.digest" "controller.image.digest")
  (list "image.pullPolicy" "imagePullPolicy")
  (list "image" "controller.image")
  (list "resources" "controller.resources")
  (list "securityContext" "controller.securityContext")
  (list "env.logLevel" "logLevel")
  (list "env.logOutputPaths" "logOutputPaths")
  (list "env.logErrorOutputPaths" "logErrorOutputPaths")
  (list "env.metricsPort" "controller.metrics.port")
  (list "env.healthProbePort" "controller.healthProbe.port")
  (list "env.kubeClientQps" "settings.kubeClientQPS")
  (list "env.kubeClientBurst" "settings.kubeClientBurst")
  (list "env.enableProfiling" "settings.enableProfiling")
  (list "env.disableLeaderElection" "settings.disableLeaderElection")
  (list "env.leaderElectionName" "settings.leaderElectionName")
  (list "env.batchMaxDuration" "settings.batchMaxDuration")
  (list "env.batchIdleDuration" "settings.batchIdleDuration")
  (list "env.preferencePolicy" "settings.preferencePolicy")
  (list "env.minValuesPolicy" "settings.minValuesPolicy")
  (list "env.featureGates" "settings.featureGates, a map")
  (list "env" "controller.env")
  (list "settings.region" "the provider's own value")
  (list "settings.flavors" "the provider's own value")
  (list "settings.pricing" "the provider's own value")
  (list "settings.logLevel" "logLevel")
  (list "logEncoding" "nothing: lines are JSON")
-}}
{{- $takenOver := include "tenon.takenOver" . -}}
{{- range $renamed -}}
{{- if and (include "tenon.isGiven" (list $.Values (index . 0))) (not (contains (printf ",%s," (index . 0)) $takenOver)) -}}
{{- fail (printf "\n\nvalue %s is not one of this chart: use %s" (index . 0) (index . 1)) -}}
{{- end -}}
{{- end -}}
{{- end }}
