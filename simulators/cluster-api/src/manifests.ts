/** Example MachineDeployments, node classes, NodePools and a workload, as YAML. */
import { stringify } from 'yaml'
import { clusterAPINodeClassKind } from '@tenon/provider-cluster-api'
import { deploymentOf, sizes, templateOf } from './sizes.ts'

const { group, kind, version } = clusterAPINodeClassKind

interface Pool {
  readonly name: string
  readonly types: readonly string[]
  /** YAML of `disruption`, without indent. */
  readonly disruption: readonly string[]
  /** YAML of the template besides its requirements. */
  readonly template?: string
}

const nodeClass = (name: string): string =>
  `apiVersion: ${group}/${version}
kind: ${kind}
metadata:
  name: ${name}
spec: {}
`

const nodePool = ({ name, types, disruption, template = '    spec:\n' }: Pool): string =>
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
          values: [${types.join(', ')}]
  disruption:
${disruption.map((line) => `    ${line}\n`).join('')}  limits:
    cpu: 96
    memory: 192Gi
`

const types = sizes.map(({ name }) => name)
const machineDeployments = sizes
  .flatMap((size) => [templateOf(size), deploymentOf(size)])
  .map((object) => stringify(object))
  .join('---\n')

const workload = `apiVersion: apps/v1
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
      containers:
        - name: app
          image: registry.k8s.io/pause
          resources:
            requests:
              cpu: 500m
              memory: 512Mi
`

/** What `tenon up --mode cluster-autoscaler` applies: only the workload, as MachineDeployments exist already. */
export const nodeGroupDemonstration: string = workload

/**
 * What `tenon up` applies without a manifest: MachineDeployments, a node class, a NodePool and a workload.
 */
export const demonstration: string = [
  machineDeployments,
  nodeClass('standard'),
  nodePool({
    name: 'standard',
    types,
    disruption: ['consolidationPolicy: WhenEmptyOrUnderutilized', 'consolidateAfter: 30s'],
  }),
  workload,
].join('---\n')

/** The node class of the guided demonstration. */
export const tourNodeClass: string = nodeClass('standard')

/** The first NodePool of the demonstration. */
export const tourNodePool: string = nodePool({
  name: 'standard',
  types,
  disruption: [
    'consolidationPolicy: WhenEmptyOrUnderutilized',
    'consolidateAfter: 3s',
    'budgets:',
    '  - nodes: 100%',
  ],
})

/** The node class and NodePool for a team. */
export const tourTeamPool: string = [
  nodeClass('team'),
  nodePool({
    name: 'team',
    types: ['small'],
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
