/** Rounds whose constraints concern other pods: spreading, affinity, anti-affinity. */
import { labels, type PodAffinityTerm, type PodSpec, type TopologySpreadConstraint } from '@tenon/api'
import { barePod, ofApp } from './objects.ts'
import { dedicatedTaint, proofLabels, zones } from './pools.ts'
import type { Round } from './round.ts'

const { zone, hostname } = labels

/** A spread of one app over a topology; required by default. */
function spread(
  app: string,
  topologyKey: string,
  maxSkew: number,
  more: Partial<TopologySpreadConstraint> = {},
): TopologySpreadConstraint {
  return { maxSkew, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector: ofApp(app), ...more }
}

/** Required affinity to the pods of an app. */
export function near(
  app: string,
  topologyKey: string,
  more: Partial<PodAffinityTerm> = {},
): Partial<PodSpec> {
  const term = { labelSelector: ofApp(app), topologyKey, ...more }
  return { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }
}

/** Required anti-affinity to the pods of an app. */
export function apartFrom(
  app: string,
  topologyKey: string,
  more: Partial<PodAffinityTerm> = {},
): Partial<PodSpec> {
  const term = { labelSelector: ofApp(app), topologyKey, ...more }
  return { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }
}

const zoneSpread: Round = {
  kind: 'zone-spread',
  items: (make, draw) =>
    [1, 1, 2, 3].map((maxSkew, index) =>
      make.deployment(draw.between(4, 9), {
        name: `app-${index}`,
        requests: draw.requests(),
        spec: { topologySpreadConstraints: [spread(`app-${index}`, zone, maxSkew)] },
      }),
    ),
}

const hostnameSpread: Round = {
  kind: 'hostname-spread',
  items: (make, draw) =>
    [1, 1, 2, 3].map((maxSkew, index) =>
      make.deployment(draw.between(3, 6), {
        name: `app-${index}`,
        requests: draw.requests(),
        spec: { topologySpreadConstraints: [spread(`app-${index}`, hostname, maxSkew)] },
      }),
    ),
}

const spreadOptions: Round = {
  kind: 'spread-options',
  items: (make, draw) => {
    const constraints: Readonly<Record<string, Partial<PodSpec>>> = {
      'min-domains': {
        topologySpreadConstraints: [spread('min-domains', zone, 1, { minDomains: 3 })],
      },
      'taints-honored': {
        topologySpreadConstraints: [
          spread('taints-honored', proofLabels.rack, 1, { nodeTaintsPolicy: 'Honor' }),
        ],
      },
      'taints-tolerated': {
        tolerations: [{ key: dedicatedTaint.key, operator: 'Exists' }],
        topologySpreadConstraints: [
          spread('taints-tolerated', proofLabels.rack, 1, { nodeTaintsPolicy: 'Honor' }),
        ],
      },
      'two-zones': {
        nodeSelector: { [labels.nodePool]: 'proof-general' },
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: zone, operator: 'In', values: [zones[0], zones[1]] }] },
              ],
            },
          },
        },
        topologySpreadConstraints: [spread('two-zones', zone, 1)],
      },
      'per-revision': {
        topologySpreadConstraints: [
          spread('per-revision', hostname, 1, { matchLabelKeys: ['pod-template-hash'] }),
        ],
      },
      anyway: {
        topologySpreadConstraints: [spread('anyway', zone, 1, { whenUnsatisfiable: 'ScheduleAnyway' })],
      },
      'zone-and-host': {
        topologySpreadConstraints: [spread('zone-and-host', zone, 1), spread('zone-and-host', hostname, 2)],
      },
      'someone-else': {
        topologySpreadConstraints: [spread('nobody', hostname, 1)],
      },
    }
    return Object.entries(constraints).map(([name, spec]) =>
      make.deployment(draw.between(3, 5), { name, requests: draw.requests(), spec }),
    )
  },
}

const podAffinity: Round = {
  kind: 'pod-affinity',
  items: (make, draw) => [
    make.deployment(5, { name: 'same-zone', requests: draw.requests(), spec: near('same-zone', zone) }),
    // The largest pods are decided first: a group that must share a node is not moved to a larger one.
    make.deployment(4, {
      name: 'same-node',
      requests: { cpu: '3500m', memory: '1Gi' },
      spec: near('same-node', hostname),
    }),
    make.pod({
      name: 'leader',
      requests: { cpu: '1', memory: '2Gi' },
      spec: { nodeSelector: { [zone]: zones[2] } },
    }),
    make.deployment(5, { name: 'followers', requests: draw.requests(), spec: near('leader', zone) }),
    make.deployment(3, {
      name: 'second-followers',
      requests: { cpu: '250m', memory: '512Mi' },
      spec: near('followers', zone),
    }),
    make.deployment(4, {
      name: 'wishful',
      requests: draw.requests(),
      spec: {
        affinity: {
          podAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 50, podAffinityTerm: { labelSelector: ofApp('leader'), topologyKey: zone } },
              { weight: 90, podAffinityTerm: { labelSelector: ofApp('nobody'), topologyKey: zone } },
            ],
          },
        },
      },
    }),
  ],
}

const antiAffinity: Round = {
  kind: 'anti-affinity',
  items: (make, draw) => [
    make.deployment(5, { name: 'lonely', requests: draw.requests(), spec: apartFrom('lonely', hostname) }),
    make.deployment(4, { name: 'shy', requests: draw.requests(), spec: apartFrom('lonely', hostname) }),
    ...zones.map((value, index) =>
      make.pod({
        name: `zonal-${index}`,
        labels: { app: 'zonal' },
        requests: draw.requests(),
        spec: { ...apartFrom('zonal', zone), nodeSelector: { [zone]: value } },
      }),
    ),
    make.deployment(4, {
      name: 'reluctant',
      requests: draw.requests(),
      spec: {
        affinity: {
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 10, podAffinityTerm: { labelSelector: ofApp('reluctant'), topologyKey: hostname } },
            ],
          },
        },
      },
    }),
    make.deployment(6, { name: 'plain', requests: draw.requests() }),
  ],
}

const guests = 'proof-namespaces-guests'
const strangers = 'proof-namespaces-strangers'

const namespaces: Round = {
  kind: 'namespaces',
  namespaces: {
    [guests]: { 'proof.example/side': 'guest' },
    [strangers]: { 'proof.example/side': 'stranger' },
  },
  items: (make, draw) => {
    const side = (value: string) => ({ namespaceSelector: { matchLabels: { 'proof.example/side': value } } })
    // The same app everywhere, each in its own zone: only the namespace distinguishes them.
    const hosts = [
      [guests, zones[1]],
      [strangers, zones[2]],
      [make.namespace, zones[3]],
    ] as const
    return [
      ...hosts.map(([namespace, value]) =>
        barePod({
          namespace,
          name: 'host',
          requests: { cpu: '500m', memory: '512Mi' },
          spec: { nodeSelector: { [zone]: value } },
        }),
      ),
      make.deployment(3, { name: 'own', requests: draw.requests(), spec: near('host', zone) }),
      make.deployment(3, {
        name: 'listed',
        requests: draw.requests(),
        spec: near('host', zone, { namespaces: [guests] }),
      }),
      make.deployment(3, {
        name: 'selected',
        requests: draw.requests(),
        spec: near('host', zone, side('stranger')),
      }),
      make.deployment(3, {
        name: 'anywhere',
        requests: draw.requests(),
        spec: near('host', zone, { namespaceSelector: {} }),
      }),
      make.deployment(3, {
        name: 'avoiding',
        requests: draw.requests(),
        spec: apartFrom('host', hostname, side('guest')),
      }),
    ]
  },
}

export const podRounds: readonly Round[] = [
  zoneSpread,
  hostnameSpread,
  spreadOptions,
  podAffinity,
  antiAffinity,
  namespaces,
]
