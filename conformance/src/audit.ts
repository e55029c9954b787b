/** The API server's audit log: who requested what, with the status code. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The service account of the chart if it is installed as documented. */
export const chartAccount = 'system:serviceaccount:kube-system:karpenter'

/** The account of the controller in tests of Cluster API; it has all rights, unlike {@link chartAccount}. */
export const clusterApiAccount = 'system:serviceaccount:kube-system:tenon-at-cluster-api'

/** If this variable is set, requests of the administrator, who runs most of the suite, are recorded too. */
export const auditAllVariable = 'TENON_CONFORMANCE_AUDIT_ALL'

/** The parts of a request that matter for rights. */
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

/**
 * The API server's audit policy: without bodies, for accounts whose rights are checked, and for deletions of
 * pods.
 */
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

/** The audit log of a control plane in `folder`. */
export function auditLogFile(folder: string): string {
  return join(folder, 'logs', 'audit.log')
}

/** The requests so far. */
export function readAuditLog(folder: string): readonly AuditEvent[] {
  const file = auditLogFile(folder)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n')
  // The last line may be incomplete.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as AuditEvent)
}

/** Which user agent deleted each pod first since `sinceMs` (Unix milliseconds); each user agent once. */
export function podDeleters(folder: string, sinceMs: number): readonly string[] {
  const first = new Map<string, string>()
  for (const event of readAuditLog(folder)) {
    const { verb, objectRef, requestReceivedTimestamp = '', userAgent = '' } = event
    if (verb !== 'delete' || objectRef?.resource !== 'pods') continue
    if (Date.parse(requestReceivedTimestamp) < sinceMs) continue
    const pod = `${objectRef.namespace}/${objectRef.name}`
    // A kubelet, which removes the pod in the end, only completes a deletion.
    if (!first.has(pod)) first.set(pod, userAgent)
  }
  return [...new Set(first.values())]
}
