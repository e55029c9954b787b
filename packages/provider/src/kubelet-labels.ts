/**
 * Which labels a kubelet may set on its own Node (kubelet 1.16 to 1.37: flag --node-labels, admission NodeRestriction).
 */

const reservedDomains = ['kubernetes.io', 'k8s.io'] as const
const openDomains = ['kubelet.kubernetes.io', 'node.kubernetes.io'] as const
const openLabels: ReadonlySet<string> = new Set([
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'failure-domain.beta.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'kubernetes.io/arch',
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
])

/**
 * Whether a kubelet may register with the label. It does not start with other labels; the core sets those when the Node
 * registers.
 */
export function isKubeletLabel(key: string): boolean {
  const domain = key.includes('/') ? (key.split('/', 1)[0] ?? '') : ''
  const isWithin = (parent: string) => domain === parent || domain.endsWith(`.${parent}`)
  return !reservedDomains.some(isWithin) || openLabels.has(key) || openDomains.some(isWithin)
}

/** The labels with which a kubelet may register. */
export function kubeletLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => isKubeletLabel(key)))
}
