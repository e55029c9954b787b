/**
 * Rounds about rules of kube-scheduler that an autoscaler is tempted to shorten: which domains count, and which pods
 * may open one.
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

/** Of two terms of node affinity no pool can meet the first: the spread counts the zones of both. */
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

/** Nodes that pods are only asked to avoid count where taints are honoured. */
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

/** A pod that must be where the pods of a DaemonSet are: any new node brings one along. */
const daemonsCompany: Round = {
  kind: 'daemons-company',
  items: (make) => [
    daemonSet({ namespace: make.namespace, name: 'agent', requests: { cpu: '100m', memory: '64Mi' } }),
    make.deployment(2, { name: 'client', requests: small, spec: near('agent', hostname) }),
  ],
}

/** Two pods for one zone, where all zones count: after the first, the others lag too far behind. */
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

/** Pods that must share a node which holds one of them: only the first may open one. */
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

/** Pods for which nodes are sold in two zones, and one that opens a third: after one in each, the others lag behind. */
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

/** Those of which every pod has a place. */
export const heldShortcuts: readonly Round[] = [droppedTerm, softTaint, daemonsCompany]
/** Those of which some pod has none. */
export const refusedShortcuts: readonly Round[] = [ignoredAffinity, oneOpens, openedZone]
