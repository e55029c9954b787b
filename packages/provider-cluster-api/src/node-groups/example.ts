/** What the first Node of a group will be. */
import {
  type CsiNode,
  formatResources,
  isQuantity,
  labels,
  ownValue,
  parseResource,
  type ResourceSlice,
  type Resources,
  setOwn,
} from '@tenon/api'
import type { NodeExample } from '@tenon/provider'
import { capacityOf } from '../catalogue/capacity.ts'
import { Findings } from '../catalogue/findings.ts'
import { type Architecture, isPropagated, parseLabels } from '../catalogue/node-labels.ts'
import { nodeTaintsOf } from '../catalogue/node-taints.ts'
import type { TemplateFacts } from '../catalogue/template-facts.ts'
import { capacityAnnotations, defaultGroup, namesOf } from '../names.ts'
import type { Scalable } from './scalable.ts'

/** What a kube-proxy requests, which runs on every Node as a mirror pod. */
const proxyCpu = '100m'
const amounts = [
  ['cpu', capacityAnnotations.cpu],
  ['memory', capacityAnnotations.memory],
  ['ephemeral-storage', capacityAnnotations.ephemeralDisk],
] as const

/** The capacity of a resource's Nodes. */
export type GroupCapacity =
  | { readonly kind: 'known'; readonly capacity: Resources }
  /** `reason` names the annotation. */
  | { readonly kind: 'unknown'; readonly reason: string }

export function groupCapacityOf(object: Scalable, facts: TemplateFacts | undefined): GroupCapacity {
  const findings = new Findings()
  const capacity = capacityOf(withoutEmptyAmounts(object), facts, findings)
  if (findings.problems.length === 0) return { kind: 'known', capacity }
  const problems = [...findings.problems, ...(facts?.problem === undefined ? [] : [facts.problem])]
  return { kind: 'unknown', reason: problems.join('; ') }
}

/** Whether the annotations alone decide about the capacity, so that the template need not be read. */
export function isAnnotated(object: Scalable): boolean {
  const { annotations } = withoutEmptyAmounts(object).metadata
  return amounts.slice(0, 2).every(([, annotation]) => ownValue(annotations, annotation) !== undefined)
}

/** Amounts of nothing count as absent. */
function withoutEmptyAmounts(object: Scalable): Scalable {
  const annotations = { ...object.metadata.annotations }
  for (const [resource, annotation] of amounts) {
    const text = ownValue(annotations, annotation)
    if (text === '' || (text !== undefined && isQuantity(text) && parseResource(resource, text) === 0))
      delete annotations[annotation]
  }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/**
 * A Node of the group, with its CSI drivers and devices.
 * @param warnings receives what is left out.
 */
export function exampleOf(
  object: Scalable,
  facts: TemplateFacts | undefined,
  capacity: Resources,
  architecture: Architecture,
  warnings: string[],
): NodeExample {
  const { annotations } = object.metadata
  const name = `first-node-of-${object.metadata.name}`
  const findings = new Findings()
  const taints = nodeTaintsOf(object, namesOf(defaultGroup), findings)
  warnings.push(...findings.warnings)
  const csiNode = csiNodeIn(ownValue(annotations, capacityAnnotations.csiDriver) ?? '', name)
  const slice = sliceIn(annotations, name)
  const allocatable = {
    ...capacity,
    cpu: Math.max(0, (ownValue(capacity, 'cpu') ?? 0) - parseResource('cpu', proxyCpu)),
    pods: Math.max(0, (ownValue(capacity, 'pods') ?? 0) - 1),
  }
  return {
    node: {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: labelsOf(object, facts, architecture, name) },
      spec: { taints },
      status: {
        capacity: formatResources(capacity),
        allocatable: formatResources(allocatable),
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    },
    ...(csiNode !== undefined && { csiNode }),
    ...(slice !== undefined && { resourceSlices: [slice] }),
  }
}

function labelsOf(
  { metadata, spec }: Scalable,
  facts: TemplateFacts | undefined,
  architecture: Architecture,
  hostname: string,
): Readonly<Record<string, string>> {
  const found: Record<string, string> = {
    [labels.arch]: facts?.architecture ?? architecture,
    [labels.os]: facts?.operatingSystem ?? 'linux',
    [labels.hostname]: hostname,
  }
  for (const [key, value] of Object.entries(spec?.template?.metadata?.labels ?? {}))
    if (isPropagated(key, { group: defaultGroup })) setOwn(found, key, value)
  const annotated = ownValue(metadata.annotations, capacityAnnotations.labels) ?? ''
  for (const [key, value] of parseLabels(annotated)) if (key !== '') setOwn(found, key, value)
  return found
}

/** `driver=limit,…`; 0 is a driver without a limit. */
function csiNodeIn(text: string, nodeName: string): CsiNode | undefined {
  const drivers = text.split(',').flatMap((part) => {
    const [name = '', limit = ''] = part.split('=').map((each) => each.trim())
    if (name === '' || !/^\d{1,9}$/.test(limit)) return []
    const count = Number(limit)
    return [{ name, nodeID: nodeName, ...(count > 0 && { allocatable: { count } }) }]
  })
  if (drivers.length === 0) return undefined
  return { apiVersion: 'storage.k8s.io/v1', kind: 'CSINode', metadata: { name: nodeName }, spec: { drivers } }
}

/** The GPUs of the Node as devices of a driver. */
function sliceIn(
  annotations: Scalable['metadata']['annotations'],
  nodeName: string,
): ResourceSlice | undefined {
  const driver = ownValue(annotations, capacityAnnotations.draDriver) ?? ''
  const count = Number(ownValue(annotations, capacityAnnotations.gpuCount) ?? 0)
  if (driver === '' || !Number.isInteger(count) || count <= 0) return undefined
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: `${nodeName}-${driver}` },
    spec: {
      driver,
      nodeName,
      pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
      devices: Array.from({ length: count }, (_, at) => ({
        name: `gpu-${String(at)}`,
        attributes: { type: { string: 'gpu' } },
      })),
    },
  }
}
