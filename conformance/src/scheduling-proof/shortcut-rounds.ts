/**
 * Rounds about rules of kube-scheduler that an autoscaler is tempted to simplify: which domains count, and
 * which pods may open one.
 */
import { labels, type PodSpec, type TopologySpreadConstraint } from '@tenon/api'
import { daemonSet, ofApp } from './objects.ts'
import { near } from './pod-rounds.ts'
import { proofLabels, zones } from './pools.ts'
import type { Round } from './round.ts'

const { zone, hostname } = labels
const small = { cpu: '500m', memory: '512Mi' }

const spread = (app: string, more: Partial<TopologySpreadConstraint>): TopologySpreadConstraint => ({
  maxSkew: 1,
  topologyKey: zone,
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: ofApp(app),
  ...more,
})

const inZones = (...values: string[]) => ({ key: zone, operator: 'In' as const, values })

/** A pod in the zone of that name, so that there is a node in it. */
const anchor = (value: string) => ({
  name: `anchor-${value}`,
  requests: small,
  spec: { nodeSelector: { [zone]: value } },
})

/** No pool can meet the first of two node affinity terms: the spread counts the zones of both. */
const droppedTerm: Round = {
  kind: 'dropped-term',
  items: (make) => {
    const nodeSelectorTerms = [
      {
        matchExpressions: [
          inZones(zones[0]),
          { key: proofLabels.team, operator: 'In' as const, values: ['nobody'] },
        ],
      },
      { matchExpressions: [inZones(zones[1], zones[2])] },
    ]
    const spec: Partial<PodSpec> = {
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
      topologySpreadConstraints: [spread('spread', {})],
    }
    return [make.deployment(4, { name: 'spread', requests: small, spec })]
  },
}

/** With taints honoured, nodes with a soft taint still count. */
const softTaint: Round = {
  kind: 'soft-taint',
  items: (make) => [
    make.deployment(4, {
      name: 'spread',
      requests: small,
      spec: {
        nodeSelector: { [proofLabels.team]: 'quiet' },
        topologySpreadConstraints: [spread('spread', { nodeTaintsPolicy: 'Honor' })],
      },
    }),
  ],
}

/** A pod with affinity to the pods of a DaemonSet: any new node has one. */
const daemonsCompany: Round = {
  kind: 'daemons-company',
  items: (make) => [
    daemonSet({ namespace: make.namespace, name: 'agent', requests: { cpu: '100m', memory: '64Mi' } }),
    make.deployment(2, { name: 'client', requests: small, spec: near('agent', hostname) }),
  ],
}

/** Two pods for one zone, where all zones count: after the first, the others are too far behind. */
export const ignoredAffinity: Round = {
  kind: 'ignored-affinity',
  items: (make) => [
    make.pod(anchor(zones[1])),
    make.deployment(2, {
      name: 'pinned',
      requests: small,
      spec: {
        nodeSelector: { [zone]: zones[0] },
        topologySpreadConstraints: [spread('pinned', { nodeAffinityPolicy: 'Ignore' })],
      },
    }),
  ],
}

/** Pods that must share a node with one of them: only the first may open one. */
export const oneOpens: Round = {
  kind: 'one-opens',
  items: (make) => [
    make.deployment(3, {
      name: 'together',
      requests: { cpu: '40', memory: '1Gi' },
      spec: near('together', hostname),
    }),
  ],
}

/**
 * Pods for which nodes are offered in two zones, and one that opens a third: after one in each, the others are
 * behind.
 */
export const openedZone: Round = {
  kind: 'opened-zone',
  items: (make) => [
    make.pod(anchor(zones[0])),
    make.deployment(4, {
      name: 'large',
      requests: { cpu: '70', memory: '1Gi' },
      spec: { topologySpreadConstraints: [spread('large', {})] },
    }),
  ],
}

/** Rounds in which every pod can be placed. */
export const heldShortcuts: readonly Round[] = [droppedTerm, softTaint, daemonsCompany]
/** Rounds in which some pod cannot be placed. */
export const refusedShortcuts: readonly Round[] = [ignoredAffinity, oneOpens, openedZone]
