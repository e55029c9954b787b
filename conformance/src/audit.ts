/** What the API server notes of requests: who asked for what, and the answer's code. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The service account of the chart when it is installed as its documentation says. */
export const chartAccount = 'system:serviceaccount:kube-system:karpenter'

/** Whom tests of Cluster API run the controller as; with all rights, unlike {@link chartAccount}. */
export const clusterApiAccount = 'system:serviceaccount:kube-system:tenon-at-cluster-api'

/** With this variable set, requests of the administrator are noted too, which is who runs most of the suite. */
export const auditAllVariable = 'TENON_CONFORMANCE_AUDIT_ALL'

/** A request, as far as rights are concerned. */
export interface AuditEvent {
  readonly auditID: string
  readonly verb: string
  readonly user: { readonly username: string }
  readonly userAgent?: string
  readonly requestReceivedTimestamp?: string
  readonly objectRef?: {
    readonly apiGroup?: string
    readonly resource?: string
    readonly subresource?: string
    readonly namespace?: string
    readonly name?: string
  }
  readonly responseStatus?: { readonly code?: number; readonly message?: string }
}

/** The API server's audit policy: without bodies, for those whose rights are looked at, and for who deletes pods. */
export function auditPolicy(environment: Readonly<Record<string, string | undefined>>): string {
  const users = [
    chartAccount,
    clusterApiAccount,
    ...(environment[auditAllVariable] ? ['kubernetes-admin'] : []),
  ]
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    omitManagedFields: true,
    rules: [
      { level: 'Metadata', users },
      { level: 'Metadata', verbs: ['delete'], resources: [{ group: '', resources: ['pods'] }] },
      { level: 'None' },
    ],
  }
  return `${JSON.stringify(policy, null, 2)}\n`
}

/** Where a control plane in `folder` keeps its audit log. */
export function auditLogFile(folder: string): string {
  return join(folder, 'logs', 'audit.log')
}

/** The requests noted so far. */
export function readAuditLog(folder: string): readonly AuditEvent[] {
  const file = auditLogFile(folder)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  // The last line may be half written.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as AuditEvent)
}

/** Who asked first for each pod to be deleted from this moment on, in Unix milliseconds: each user agent once. */
export function podDeleters(folder: string, sinceMs: number): readonly string[] {
  const first = new Map<string, string>()
  for (const event of readAuditLog(folder)) {
    const { verb, objectRef, requestReceivedTimestamp = '', userAgent = '' } = event
    if (verb !== 'delete' || objectRef?.resource !== 'pods') continue
    if (Date.parse(requestReceivedTimestamp) < sinceMs) continue
    const pod = `${objectRef.namespace}/${objectRef.name}`
    // Who takes a pod away in the end, as a kubelet does, only follows.
    if (!first.has(pod)) first.set(pod, userAgent)
  }
  return [...new Set(first.values())]
}
