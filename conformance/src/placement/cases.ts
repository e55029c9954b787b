/**
 * Random clusters with pods to place in them. Cases do not affect each other: topology keys, node names,
 * namespaces and storage classes contain the case's name, so that many fit into one API server.
 */
import { kinds, type ResourceType, type UnstructuredObject } from '@tenon/api'
import { type Draw, proofKinds } from '../scheduling-proof/objects.ts'
import { drawVolumes, type VolumeChoice } from './volumes.ts'

/** An object to create, and its resource. */
export interface CaseObject {
  readonly type: ResourceType
  readonly object: UnstructuredObject
  /** Written to the status subresource afterwards, as creation drops the status. */
  readonly status?: Readonly<Record<string, unknown>>
  /** Deleted with its grace period once all objects exist: a bound pod is then terminating. */
  readonly isDeleted?: boolean
}

/** A cluster at rest and pods to place, each by itself. */
export interface PlacementCase {
  readonly name: string
  /** In order of their creation; pods among them are bound. */
  readonly objects: readonly CaseObject[]
  readonly probes: readonly UnstructuredObject[]
}

/** Fields of a pod or node as they are sent, including ones without a type here. */
type Fields = Readonly<Record<string, unknown>>

const image = 'registry.k8s.io/pause:3.10'
const probesPerCase = 3
const apps = ['web', 'db', 'cache'] as const
const tiers = ['x', 'y'] as const
const taintKeys = ['dedicated', 'hazard'] as const
const effects = ['NoSchedule', 'NoExecute', 'PreferNoSchedule'] as const

/** Runtime classes that pods of every case use: overhead, and a class for certain nodes only. */
export const runtimeClasses: readonly CaseObject[] = [
  {
    type: proofKinds.runtimeClass,
    object: {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'heavy' },
      handler: 'heavy',
      overhead: { podFixed: { cpu: '300m', memory: '128Mi' } },
    },
  },
  {
    type: proofKinds.runtimeClass,
    object: {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'picky' },
      handler: 'picky',
      scheduling: {
        nodeSelector: { disk: 'ssd' },
        tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      },
    },
  },
]

/** Generates the case with this name; deterministic. */
export function drawCase(name: string, draw: Draw): PlacementCase {
  return new CaseDraw(name, draw).whole()
}

class CaseDraw {
  readonly #name: string
  readonly #draw: Draw
  readonly #nodes: string[]
  readonly #namespaces: string[]

  constructor(name: string, draw: Draw) {
    this.#name = name
    this.#draw = draw
    this.#nodes = Array.from({ length: draw.between(2, 7) }, (_, index) => `${name}-n${index}`)
    this.#namespaces = [`${name}-a`, `${name}-b`]
  }

  whole(): PlacementCase {
    const draw = this.#draw
    const volumes = drawVolumes(this.#name, this.#namespaces, this.#nodes, draw)
    const nodes = this.#nodes.map((node) => this.#node(node))
    const pods = Array.from({ length: draw.between(0, 9) }, (_, index) =>
      this.#boundPod(`bound-${index}`, volumes.choices),
    )
    return {
      name: this.#name,
      objects: [
        ...this.#namespaces.map((namespace) => this.#namespace(namespace)),
        ...nodes,
        ...volumes.objects,
        ...pods,
      ],
      probes: Array.from({ length: probesPerCase }, (_, index) =>
        this.#pod(`probe-${index}`, volumes.choices, undefined),
      ),
    }
  }

  /** Usually on an existing node, running or terminating, and sometimes completed. */
  #boundPod(name: string, choices: readonly VolumeChoice[]): CaseObject {
    const draw = this.#draw
    const nodeName = draw.chance(3) ? `${this.#name}-gone` : draw.pick(this.#nodes)
    const object = this.#pod(name, choices, nodeName)
    const fate = draw.between(1, 100)
    return {
      type: kinds.pod,
      object,
      ...(fate <= 15 && { isDeleted: true }),
      ...(fate > 90 && { status: { phase: draw.pick(['Succeeded', 'Failed']) } }),
    }
  }

  #namespace(name: string): CaseObject {
    const labels = { team: this.#draw.pick(['red', 'blue']) }
    return {
      type: kinds.namespace,
      object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } },
    }
  }

  /** A topology key of this case. */
  #key(topology: 'zone' | 'rack' | 'host'): string {
    return `${this.#name}.test/${topology}`
  }

  #anyKey(): string {
    return this.#key(this.#draw.pick(['zone', 'zone', 'rack', 'host'] as const))
  }

  #node(name: string): CaseObject {
    const draw = this.#draw
    const zone = draw.pick(['z1', 'z2', 'z3'])
    const labels: Record<string, string> = {
      'kubernetes.io/hostname': name,
      disk: draw.pick(['ssd', 'hdd']),
      ...(draw.chance(90) && { 'topology.kubernetes.io/zone': zone }),
      ...(draw.chance(90) && { [this.#key('zone')]: zone }),
      ...(draw.chance(60) && { [this.#key('rack')]: draw.pick(['r1', 'r2']) }),
      ...(draw.chance(95) && { [this.#key('host')]: name }),
      ...(draw.chance(60) && {
        generation: draw.pick(['3', '5', '07', '12', 'x5', '5.5', '9223372036854775808']),
      }),
    }
    const taints = taintKeys
      .filter(() => draw.chance(18))
      .map((key) => ({
        key,
        effect: draw.pick(effects),
        ...(draw.chance(60) && { value: draw.pick(['a', 'b', '5']) }),
      }))
    const allocatable = {
      cpu: draw.pick(['1', '2', '4', '3900m']),
      memory: draw.pick(['2Gi', '4Gi', '3800000Ki']),
      'ephemeral-storage': draw.pick(['1Gi', '10Gi']),
      ...(draw.chance(95) && { pods: draw.pick(['2', '4', '8', '20']) }),
      ...(draw.chance(40) && { 'example.com/gpu': draw.pick(['0', '1', '2']) }),
      ...(draw.chance(20) && { 'hugepages-2Mi': '64Mi' }),
    }
    return {
      type: kinds.node,
      object: {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels },
        spec: { ...(taints.length > 0 && { taints }), ...(draw.chance(10) && { unschedulable: true }) },
        status: { capacity: allocatable, allocatable },
      },
    }
  }

  #pod(name: string, choices: readonly VolumeChoice[], nodeName: string | undefined): UnstructuredObject {
    const draw = this.#draw
    const isProbe = nodeName === undefined
    const namespace = draw.pick(this.#namespaces)
    const labels = {
      ...(draw.chance(90) && { app: draw.pick(apps) }),
      ...(draw.chance(60) && { tier: draw.pick(tiers) }),
      ...(draw.chance(50) && { revision: draw.pick(['1', '2']) }),
    }
    const constraints = this.#constraints(isProbe)
    const volumes = this.#volumes(choices, namespace)
    const selector = isProbe && draw.chance(15) ? this.#nodeSelector() : undefined
    const runtimeClassName = draw.chance(8) ? draw.pick(['heavy', 'picky']) : undefined
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace, labels },
      spec: {
        ...this.#containers(),
        ...(nodeName !== undefined && { nodeName }),
        ...constraints,
        ...(selector && { nodeSelector: selector }),
        ...(runtimeClassName !== undefined && { runtimeClassName }),
        ...(draw.chance(40) && { tolerations: draw.some(this.#tolerations(), 2) }),
        ...volumes,
      },
    }
  }

  /** Constraints of any pod, and those of pods to place only. */
  #constraints(isProbe: boolean): Fields {
    const draw = this.#draw
    const affinity = {
      ...(isProbe && draw.chance(35) && { nodeAffinity: this.#nodeAffinity() }),
      ...(draw.chance(isProbe ? 35 : 10) && { podAffinity: this.#podTerms() }),
      ...(draw.chance(30) && { podAntiAffinity: this.#podTerms() }),
    }
    const spread = isProbe && draw.chance(60) ? this.#spread() : []
    return {
      ...(Object.keys(affinity).length > 0 && { affinity }),
      ...(spread.length > 0 && { topologySpreadConstraints: spread }),
    }
  }

  #volumes(choices: readonly VolumeChoice[], namespace: string): Fields {
    const draw = this.#draw
    const usable = choices.filter((one) => one.namespace === undefined || one.namespace === namespace)
    if (usable.length === 0 || !draw.chance(30)) return {}
    const volumes = draw.some(usable, 2)
    return { volumes: volumes.map(({ source }, index) => ({ name: `volume-${index}`, ...source })) }
  }

  #containers(): Fields {
    const draw = this.#draw
    const isHostNetwork = draw.chance(8)
    const containers = Array.from({ length: draw.between(1, 2) }, (_, index) =>
      this.#container(`main-${index}`, index === 0, isHostNetwork),
    )
    const initContainers = draw.chance(30)
      ? Array.from({ length: draw.between(1, 3) }, (_, index) => ({
          ...this.#container(`init-${index}`, false, isHostNetwork),
          ...(draw.chance(50) && { restartPolicy: 'Always' }),
        }))
      : []
    return {
      containers,
      ...(initContainers.length > 0 && { initContainers }),
      ...(isHostNetwork && { hostNetwork: true }),
      ...(draw.chance(8) && {
        resources: {
          requests: draw.pick<Fields>([{ cpu: '4' }, { cpu: '3500m', memory: '3Gi' }, { memory: '6Gi' }]),
        },
      }),
    }
  }

  #container(name: string, isFirst: boolean, isHostNetwork: boolean): Fields {
    const draw = this.#draw
    const requests = {
      ...(draw.chance(70) && { cpu: draw.pick(['100m', '250m', '500m', '1', '0.3']) }),
      ...(draw.chance(60) && { memory: draw.pick(['64Mi', '256Mi', '512Mi', '1G', '100e6']) }),
      ...(draw.chance(10) && { 'ephemeral-storage': draw.pick(['500Mi', '2Gi']) }),
    }
    const whole = {
      ...(isFirst && draw.chance(10) && { 'example.com/gpu': draw.pick(['1', '2']) }),
      ...(isFirst && draw.chance(4) && { 'hugepages-2Mi': '32Mi', cpu: '100m' }),
    }
    // A limit without a request is the request.
    const isByLimit = draw.chance(10)
    const limits = isByLimit ? { ...requests, ...whole } : whole
    const port = draw.pick([8080, 8081, 9090])
    const hostIP = draw.pick([undefined, undefined, '0.0.0.0', '127.0.0.1', '10.0.0.1', '::'])
    const ports = {
      containerPort: port,
      ...(draw.chance(30) && { protocol: draw.pick(['TCP', 'UDP']) }),
      ...(!isHostNetwork && draw.chance(80) && { hostPort: port, ...(hostIP !== undefined && { hostIP }) }),
    }
    return {
      name,
      image,
      resources: { ...(!isByLimit && { requests: { ...requests, ...whole } }), limits },
      ...(draw.chance(20) && { ports: [ports] }),
    }
  }

  #nodeSelector(): Fields {
    return this.#draw.pick<Fields>([
      { disk: 'ssd' },
      { [this.#key('zone')]: 'z1' },
      { generation: '5' },
      { disk: 'hdd', [this.#key('rack')]: 'r1' },
    ])
  }

  #nodeAffinity(): Fields {
    const draw = this.#draw
    const nodeSelectorTerms = Array.from({ length: draw.between(1, 2) }, () => {
      const isByName = draw.chance(20)
      const matchFields = [
        {
          key: 'metadata.name',
          operator: draw.pick(['In', 'In', 'NotIn']),
          values: [draw.pick(this.#nodes)],
        },
      ]
      const matchExpressions = draw.chance(isByName ? 40 : 97) ? draw.some(this.#nodeExpressions(), 2) : []
      return {
        ...(isByName && { matchFields }),
        ...(matchExpressions.length > 0 && { matchExpressions }),
      }
    })
    const preference = { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] }
    return {
      ...(draw.chance(92) && { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } }),
      ...(draw.chance(20) && {
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 10, preference }],
      }),
    }
  }

  #nodeExpressions(): readonly Fields[] {
    const draw = this.#draw
    const zone = this.#key('zone')
    return [
      { key: zone, operator: 'In', values: draw.some(['z1', 'z2', 'z3'], 2) },
      { key: zone, operator: 'NotIn', values: draw.some(['z1', 'z2', 'z3'], 2) },
      { key: this.#key('rack'), operator: draw.pick(['Exists', 'DoesNotExist']) },
      { key: 'disk', operator: 'In', values: ['ssd', 'hdd'] },
      {
        key: 'generation',
        operator: draw.pick(['Gt', 'Lt']),
        values: [draw.chance(2) ? '-1' : draw.pick(['4', '5', '07', '6'])],
      },
      { key: 'kubernetes.io/hostname', operator: 'NotIn', values: [draw.pick(this.#nodes)] },
    ]
  }

  #labelSelector(): Fields {
    const draw = this.#draw
    return draw.pick<Fields>([
      { matchLabels: { app: draw.pick(apps) } },
      { matchLabels: { app: draw.pick(apps) } },
      { matchLabels: { app: draw.pick(apps), tier: draw.pick(tiers) } },
      { matchExpressions: [{ key: 'app', operator: 'In', values: draw.some(apps, 2) }] },
      { matchExpressions: [{ key: 'tier', operator: draw.pick(['Exists', 'DoesNotExist']) }] },
      { matchExpressions: [{ key: 'app', operator: 'NotIn', values: [draw.pick(apps)] }] },
      {},
    ])
  }

  #podTerms(): Fields {
    const draw = this.#draw
    const required = Array.from({ length: draw.between(1, 2) }, () => this.#podTerm())
    return {
      requiredDuringSchedulingIgnoredDuringExecution: required,
      ...(draw.chance(10) && {
        preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 5, podAffinityTerm: this.#podTerm() }],
      }),
    }
  }

  #podTerm(): Fields {
    const draw = this.#draw
    const hasSelector = draw.chance(95)
    const keys = hasSelector ? draw.between(1, 100) : 100
    return {
      topologyKey: this.#anyKey(),
      ...(hasSelector && { labelSelector: this.#labelSelector() }),
      ...(keys <= 12 && { matchLabelKeys: ['revision'] }),
      ...(keys > 12 && keys <= 20 && { mismatchLabelKeys: ['revision'] }),
      ...draw.pick<Fields>([
        {},
        {},
        {},
        { namespaces: [draw.pick(this.#namespaces)] },
        { namespaces: this.#namespaces },
        { namespaceSelector: {} },
        { namespaceSelector: { matchLabels: { team: draw.pick(['red', 'blue']) } } },
        { namespaces: [draw.pick(this.#namespaces)], namespaceSelector: { matchLabels: { team: 'red' } } },
      ]),
    }
  }

  #spread(): readonly Fields[] {
    const draw = this.#draw
    const keys = draw.some([this.#key('zone'), this.#key('rack'), this.#key('host')], 2)
    return keys.map((topologyKey) => {
      const isHard = draw.chance(85)
      const hasSelector = draw.chance(95)
      return {
        topologyKey,
        maxSkew: draw.pick([1, 1, 2, 3]),
        whenUnsatisfiable: isHard ? 'DoNotSchedule' : 'ScheduleAnyway',
        ...(hasSelector && { labelSelector: this.#labelSelector() }),
        ...(hasSelector && draw.chance(20) && { matchLabelKeys: ['revision'] }),
        ...(isHard && draw.chance(25) && { minDomains: draw.between(1, 4) }),
        ...(draw.chance(50) && { nodeAffinityPolicy: draw.pick(['Honor', 'Ignore']) }),
        ...(draw.chance(50) && { nodeTaintsPolicy: draw.pick(['Honor', 'Ignore']) }),
      }
    })
  }

  #tolerations(): readonly Fields[] {
    const draw = this.#draw
    return [
      { key: 'dedicated', operator: 'Exists' },
      { key: 'dedicated', value: draw.pick(['a', 'b']), effect: draw.pick(effects) },
      { key: 'hazard', operator: 'Equal', value: 'a' },
      { key: 'hazard', operator: 'Exists', effect: draw.pick(effects) },
      { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
      { operator: 'Exists', ...(draw.chance(50) && { effect: 'NoSchedule' }) },
      // The operators Gt and Lt are for clusters that enable them.
      ...(draw.chance(2) ? [{ key: 'dedicated', operator: draw.pick(['Gt', 'Lt']), value: '3' }] : []),
    ]
  }
}
