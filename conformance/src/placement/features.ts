/**
 * Adds to a random case what decides about nodes in some versions of Kubernetes only, or differently: nominations, resizes
 * in place, declared features, extended resources that devices serve, free storage and missing CSI drivers (VER-8).
 */
import { kinds, type UnstructuredObject } from '@tenon/api'
import type { Draw } from '../scheduling-proof/objects.ts'
import type { CaseObject, PlacementCase } from './cases.ts'

type Fields = Readonly<Record<string, unknown>>

const image = 'registry.k8s.io/pause:3.10'
const zoneLabel = 'topology.kubernetes.io/zone'
const feature = 'RestartAllContainersOnContainerExits'
/** Its CSIStorageCapacity counts. */
const countingDriver = 'counting.csi.test'
/** Nodes without it are refused. */
const neededDriver = 'needed.csi.test'

/** The minor versions that have a feature without being asked for it. */
const since = {
  podLevelResources: 34,
  declaredFeatures: 36,
  extendedResources: 36,
  neededDrivers: 37,
} as const

/** Drivers that pods of every case use. */
export const csiDrivers: readonly CaseObject[] = [
  { name: countingDriver, spec: { attachRequired: false, storageCapacity: true } },
  { name: neededDriver, spec: { attachRequired: false, preventPodSchedulingIfMissing: true } },
].map(({ name, spec }) => ({
  type: kinds.csiDriver,
  object: { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name }, spec },
}))

/** @param minor version of Kubernetes that the case is for. */
export function withFeatures(one: PlacementCase, draw: Draw, minor: number): PlacementCase {
  return new Features(one, draw, minor).whole()
}

class Features {
  readonly #case: PlacementCase
  readonly #draw: Draw
  readonly #minor: number
  readonly #nodes: readonly string[]
  readonly #resource: string

  constructor(one: PlacementCase, draw: Draw, minor: number) {
    this.#case = one
    this.#draw = draw
    this.#minor = minor
    this.#nodes = one.objects.flatMap(({ type, object }) =>
      type === kinds.node ? [object.metadata.name] : [],
    )
    this.#resource = `${one.name}.test/device`
  }

  whole(): PlacementCase {
    const { name, objects, probes } = this.#case
    const pods = objects.map((each) =>
      each.type === kinds.pod
        ? this.#resized({ ...each, object: this.#stored(each.object) })
        : each.type === kinds.node
          ? this.#node(each)
          : each,
    )
    const volumes = this.#volumes()
    return {
      name,
      objects: [...pods, ...volumes, ...this.#devices(), ...this.#nominated()],
      probes: probes.map((probe) => this.#probe(this.#stored(probe), volumes)),
    }
  }

  #has(what: keyof typeof since): boolean {
    return this.#minor >= since[what]
  }

  /** A pod as an API server without the feature stores it. */
  #stored(pod: UnstructuredObject): UnstructuredObject {
    if (this.#has('podLevelResources')) return pod
    const { resources: _, ...spec } = fieldsOf(pod['spec'])
    return { ...pod, spec }
  }

  /** A bound pod whose containers have, or wait for, other amounts than they ask for. */
  #resized(pod: CaseObject): CaseObject {
    const draw = this.#draw
    if (pod.status !== undefined || !draw.chance(25)) return pod
    const containers = (fieldsOf(pod.object['spec'])['containers'] ?? []) as readonly Fields[]
    const containerStatuses = containers.map(({ name }) => ({
      name,
      image,
      imageID: '',
      ready: true,
      restartCount: 0,
      ...(draw.chance(80) && { resources: { requests: this.#amounts() } }),
      ...(draw.chance(50) && { allocatedResources: this.#amounts() }),
    }))
    const condition = { type: 'PodResizePending', status: 'True', reason: 'Infeasible' }
    return {
      ...pod,
      status: {
        phase: 'Running',
        containerStatuses,
        ...(draw.chance(25) && { conditions: [condition] }),
      },
    }
  }

  #amounts(): Fields {
    return {
      cpu: this.#draw.pick(['100m', '500m', '1', '2']),
      memory: this.#draw.pick(['64Mi', '512Mi', '1Gi']),
    }
  }

  #node(node: CaseObject): CaseObject {
    const draw = this.#draw
    const status = fieldsOf(node.object['status'])
    const amounts = draw.chance(30) ? { [this.#resource]: draw.pick(['0', '1', '2']) } : {}
    return {
      ...node,
      object: {
        ...node.object,
        status: {
          ...status,
          capacity: { ...fieldsOf(status['capacity']), ...amounts },
          allocatable: { ...fieldsOf(status['allocatable']), ...amounts },
          ...(this.#has('declaredFeatures') && draw.chance(60) && { declaredFeatures: [feature] }),
        },
      },
    }
  }

  /** Pods that keep room on a node; their gates keep the scheduler from trying them. */
  #nominated(): readonly CaseObject[] {
    const draw = this.#draw
    const namespace = this.#namespace()
    // kube-scheduler counts nominated pods even for an empty selector, for which it counts no others; the embedded one
    // counts none.
    if (this.#case.probes.some(hasEmptySelector)) return []
    return Array.from({ length: draw.between(0, 2) }, (_, index) => ({
      type: kinds.pod,
      object: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `nominated-${index}`, namespace },
        spec: {
          schedulingGates: [{ name: 'example.com/wait' }],
          containers: [{ name: 'main', image, resources: { requests: { cpu: draw.pick(['500m', '2']) } } }],
        },
      },
      status: { nominatedNodeName: draw.pick(this.#nodes) },
    }))
  }

  #namespace(): string {
    const namespace = this.#case.objects.find(({ type }) => type === kinds.namespace)?.object.metadata.name
    return namespace ?? 'default'
  }

  #devices(): readonly CaseObject[] {
    const draw = this.#draw
    if (!this.#has('extendedResources')) return []
    const { name } = this.#case
    const driver = `${name}.test`
    const object = {
      apiVersion: 'resource.k8s.io/v1',
      kind: 'DeviceClass',
      metadata: { name },
      spec: {
        extendedResourceName: this.#resource,
        selectors: [{ cel: { expression: `device.driver == '${driver}'` } }],
      },
    }
    const slices = this.#nodes
      .filter(() => draw.chance(50))
      .map((node) => ({
        type: kinds.resourceSlice,
        object: {
          apiVersion: 'resource.k8s.io/v1',
          kind: 'ResourceSlice',
          metadata: { name: node },
          spec: {
            driver,
            nodeName: node,
            pool: { name: node, generation: 1, resourceSliceCount: 1 },
            devices: Array.from({ length: draw.between(1, 2) }, (_, index) => ({ name: `device-${index}` })),
          },
        },
      }))
    return [{ type: kinds.deviceClass, object }, ...slices]
  }

  /** Unbound claims of the two drivers, and what is free for them. */
  #volumes(): readonly CaseObject[] {
    const draw = this.#draw
    const { name } = this.#case
    const namespace = this.#namespace()
    const drivers = [countingDriver, ...(this.#has('neededDrivers') ? [neededDriver] : [])]
    return drivers.flatMap((provisioner): readonly CaseObject[] => {
      if (!draw.chance(40)) return []
      const storageClassName = `${name}-${provisioner}`
      const storageClass: UnstructuredObject = {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: storageClassName },
        provisioner,
        volumeBindingMode: 'WaitForFirstConsumer',
      }
      const claim: UnstructuredObject = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: provisioner, namespace },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName,
          resources: { requests: { storage: draw.pick(['1Gi', '3Gi']) } },
        },
      }
      const free = ['z1', 'z2', 'z3'].flatMap((zone): readonly CaseObject[] => {
        if (provisioner !== countingDriver || !draw.chance(60)) return []
        return [
          {
            type: kinds.csiStorageCapacity,
            object: {
              apiVersion: 'storage.k8s.io/v1',
              kind: 'CSIStorageCapacity',
              metadata: { name: `${storageClassName}-${zone}`, namespace: 'default' },
              storageClassName,
              ...(draw.chance(90) && { nodeTopology: { matchLabels: { [zoneLabel]: zone } } }),
              capacity: draw.pick(['1Gi', '2Gi', '5Gi']),
              ...(draw.chance(30) && { maximumVolumeSize: draw.pick(['1Gi', '4Gi']) }),
            },
          },
        ]
      })
      return [
        { type: kinds.storageClass, object: storageClass },
        { type: kinds.persistentVolumeClaim, object: claim, status: { phase: 'Pending' } },
        ...free,
      ]
    })
  }

  #probe(probe: UnstructuredObject, volumes: readonly CaseObject[]): UnstructuredObject {
    const draw = this.#draw
    const spec = fieldsOf(probe['spec'])
    const [first = {}, ...others] = (spec['containers'] ?? []) as readonly Fields[]
    const resources = fieldsOf(first['resources'])
    const asked =
      this.#has('extendedResources') && draw.chance(20) ? { [this.#resource]: draw.pick(['1', '2']) } : {}
    const rules = [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [42] } }]
    const isRestarting = this.#has('declaredFeatures') && draw.chance(15)
    const container = {
      ...first,
      resources: {
        requests: { ...fieldsOf(resources['requests']), ...asked },
        limits: { ...fieldsOf(resources['limits']), ...asked },
      },
      ...(isRestarting && { restartPolicy: 'Never', restartPolicyRules: rules }),
    }
    const claims = volumes.filter(
      ({ type, object }) =>
        type === kinds.persistentVolumeClaim && object.metadata.namespace === probe.metadata.namespace,
    )
    const more = claims
      .filter(() => draw.chance(50))
      .map(({ object: { metadata } }, index) => ({
        name: `feature-${index}`,
        persistentVolumeClaim: { claimName: metadata.name },
      }))
    const own = (spec['volumes'] ?? []) as readonly Fields[]
    return {
      ...probe,
      spec: { ...spec, containers: [container, ...others], volumes: [...own, ...more] },
    }
  }
}

function fieldsOf(value: unknown): Fields {
  return (value ?? {}) as Fields
}

/** Whether a spread constraint of the pod selects everything. */
function hasEmptySelector(pod: UnstructuredObject): boolean {
  const constraints = fieldsOf(pod['spec'])['topologySpreadConstraints']
  return (
    Array.isArray(constraints) &&
    constraints.some((each) => Object.keys(fieldsOf(fieldsOf(each)['labelSelector'])).length === 0)
  )
}
