/** Example node classes, NodePools and a workload, as YAML. */
import { cleverNodeClassKind, platformLabels } from '@tenon/provider-clever-cloud'

const { group, kind, version } = cleverNodeClassKind

interface Pool {
  readonly name: string
  readonly flavors: readonly string[]
  /** YAML of `disruption`, without indent. */
  readonly disruption: readonly string[]
  readonly limits?: { readonly cpu: number; readonly memory: string }
  /** YAML of the template besides its requirements. */
  readonly template?: string
}

const nodeClass = (name: string, labels: Readonly<Record<string, string>> = {}): string =>
  `apiVersion: ${group}/${version}
kind: ${kind}
metadata:
  name: ${name}
spec:
  labels: ${JSON.stringify(labels)}
`

const nodePool = ({ name, flavors, disruption, limits, template = '' }: Pool): string =>
  `apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: ${name}
spec:
  template:
${template}      nodeClassRef:
        group: ${group}
        kind: ${kind}
        name: ${name}
      requirements:
        - key: node.kubernetes.io/instance-type
          operator: In
          values: [${flavors.join(', ')}]
  disruption:
${disruption.map((line) => `    ${line}\n`).join('')}${
  limits ? `  limits:\n    cpu: ${limits.cpu}\n    memory: ${limits.memory}\n` : ''
}`

/**
 * What `tenon up` applies without a manifest: a node class, a NodePool within the quota of a new organisation, and a
 * small workload on workers.
 */
export const demonstration: string = [
  nodeClass('standard'),
  nodePool({
    name: 'standard',
    flavors: ['2XS', 'XS', 'S', 'M'],
    disruption: ['consolidationPolicy: WhenEmptyOrUnderutilized', 'consolidateAfter: 30s'],
    limits: { cpu: 16, memory: '16Gi' },
    template: '    spec:\n',
  }),
  `apiVersion: apps/v1
kind: Deployment
metadata:
  name: demo
  namespace: default
spec:
  replicas: 12
  selector:
    matchLabels:
      app: demo
  template:
    metadata:
      labels:
        app: demo
    spec:
      nodeSelector:
        ${platformLabels.role}: worker
      containers:
        - name: app
          image: registry.k8s.io/pause
          resources:
            requests:
              cpu: 500m
              memory: 512Mi
`,
].join('---\n')

/** The node class of the guided demonstration. */
export const tourNodeClass: string = nodeClass('standard')

/** The first NodePool of the demonstration. */
export const tourNodePool: string = nodePool({
  name: 'standard',
  flavors: ['2XS', 'XS', 'S'],
  disruption: [
    'consolidationPolicy: WhenEmptyOrUnderutilized',
    'consolidateAfter: 3s',
    'budgets:',
    '  - nodes: 100%',
  ],
  limits: { cpu: 64, memory: '64Gi' },
  template: '    spec:\n',
})

/** The node class and NodePool for a team. */
export const tourTeamPool: string = [
  nodeClass('team', { 'cost-center': 'platform-eng' }),
  nodePool({
    name: 'team',
    flavors: ['2XS', 'XS'],
    disruption: ['consolidationPolicy: WhenEmpty', 'consolidateAfter: 2s', 'budgets:', '  - nodes: 100%'],
    template: `    metadata:
      labels:
        team: platform
    spec:
      taints:
        - key: team
          value: platform
          effect: NoSchedule
`,
  }),
].join('---\n')
