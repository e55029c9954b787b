/** The chart's roles that are the same for every provider, generated from the operator's rights. */
import { brakeRights, type CoreRule, clusterRights, leaseRights, type RightsSetting } from '@tenon/operator'

const notice = '# Written by npm run charts from packages/operator/src/rights.ts.'
const columns = 105

/** When the values of a release enable a setting, as template conditions. */
const conditions: Readonly<Record<RightsSetting, string>> = {
  plannedPlacement: 'ne (toString $gates.plannedPlacement) "false"',
  capacityBuffer: 'eq (include "tenon.capacityBuffer" .) "true"',
  capacityQuota: 'ne .Values.settings.compatibility "karpenter"',
  groupScheduling: 'and $gates.groupScheduling (ne .Values.settings.compatibility "karpenter")',
  dynamicResources: 'eq (include "tenon.readsDevices" .) "true"',
  secureMetrics: '.Values.controller.metrics.certificateSecret',
  surgeOnDrain:
    'and (ne (toString .Values.settings.surgeOnDrain) "false") (ne .Values.settings.compatibility "karpenter")',
  podDeletionCost: 'and .Values.settings.podDeletionCost (ne .Values.settings.compatibility "karpenter")',
  vpaPredictions: 'and .Values.settings.vpaPredictions (ne .Values.settings.compatibility "karpenter")',
}

/** Template of the ClusterRole that every provider needs. */
export function coreClusterRole(): string {
  return `${notice}
{{- $gates := .Values.settings.featureGates }}
{{- $fullname := include "tenon.fullname" . }}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $fullname }}-core
  {{- include "tenon.metadata" (list . nil) | nindent 2 }}
rules:
${rulesText(clusterRights)}---
{{ include "tenon.clusterRoleBinding" (list . (printf "%s-core" $fullname)) }}
`
}

/** Template of the Role in the release's namespace. */
export function leaseRole(): string {
  return `{{- if not .Values.settings.disableLeaderElection -}}
${notice}
{{- $fullname := include "tenon.fullname" . }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $fullname }}
  namespace: {{ .Release.Namespace }}
  {{- include "tenon.metadata" (list . nil) | nindent 2 }}
rules:
${rulesText(leaseRights('{{ include "tenon.leaseName" . | quote }}'))}---
{{ include "tenon.roleBinding" (list . $fullname .Release.Namespace) }}
{{- end }}
`
}

/** Template of the Role for the ConfigMap that pauses disruption, in the release's namespace. */
export function brakeRole(): string {
  return `${notice}
{{- $fullname := printf "%s-brake" (include "tenon.fullname" .) }}
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $fullname }}
  namespace: {{ .Release.Namespace }}
  {{- include "tenon.metadata" (list . nil) | nindent 2 }}
rules:
${rulesText(brakeRights)}---
{{ include "tenon.roleBinding" (list . $fullname .Release.Namespace) }}
`
}

function rulesText(rules: readonly CoreRule[]): string {
  const lines: string[] = []
  let open: RightsSetting | undefined
  for (const rule of rules) {
    if (rule.with !== open) {
      if (open !== undefined) lines.push('  {{- end }}')
      if (rule.with !== undefined) lines.push(`  {{- if ${conditions[rule.with]} }}`)
      open = rule.with
    }
    lines.push(...linesOf(rule))
  }
  if (open !== undefined) lines.push('  {{- end }}')
  return lines.map((line) => `${line}\n`).join('')
}

function linesOf({ because, apiGroups, resources, resourceNames, verbs }: CoreRule): readonly string[] {
  return [
    ...(because === undefined ? [] : comment(because)),
    `  - apiGroups: ${list(apiGroups)}`,
    `    resources: ${list(resources)}`,
    ...(resourceNames === undefined ? [] : [`    resourceNames: ${list(resourceNames)}`]),
    `    verbs: ${list(verbs)}`,
  ]
}

function list(items: readonly string[]): string {
  return `[${items.map((item) => (item === '' ? "''" : item)).join(', ')}]`
}

function comment(text: string): readonly string[] {
  const lines: string[] = []
  let line = '  #'
  for (const word of text.split(' ')) {
    if (line.length + word.length + 1 > columns) {
      lines.push(line)
      line = '  #'
    }
    line += ` ${word}`
  }
  return [...lines, line]
}
