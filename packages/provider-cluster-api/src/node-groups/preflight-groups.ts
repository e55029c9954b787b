/** What is wrong with resources that are node groups, or should be (cluster-autoscaler-cluster-api.md 3, 7, 9). */
import type { Node } from '@tenon/api'
import type { PreflightFinding } from '@tenon/provider'
import { ownerOfReplicas, pauseOf } from '../catalogue/growth.ts'
import type { Architecture } from '../catalogue/node-labels.ts'
import type { TemplateFacts } from '../catalogue/template-facts.ts'
import { capacityAnnotations, fixedNames } from '../names.ts'
import type { Cluster } from '../objects.ts'
import { clusterKeyOf, clusterNameOf, matchesSpec } from './discovery.ts'
import { exampleOf, groupCapacityOf } from './example.ts'
import type { HubScope } from './hub-look.ts'
import { clusterOfNode } from './node-lookup.ts'
import {
  boundsOf,
  groupIdOf,
  groupOptionsOf,
  type GroupRef,
  ownerWarnings,
  type Scalable,
} from './scalable.ts'

/** A resource in scope, with what its template says. */
export interface CheckedResource {
  readonly ref: GroupRef
  readonly object: Scalable
  readonly facts: TemplateFacts | undefined
  /** Absent if it does not exist, or Clusters may not be read. */
  readonly cluster: Cluster | undefined
}

/** A resource whose annotations give it bounds. */
export interface CheckedGroup extends CheckedResource {
  readonly min: number
  readonly max: number
}

/** The groups among resources, and those whose annotations are a mistake. */
export function groupsAmong(
  resources: readonly CheckedResource[],
  { names }: Pick<HubScope, 'names'>,
): { readonly groups: readonly CheckedGroup[]; readonly findings: readonly PreflightFinding[] } {
  const groups: CheckedGroup[] = []
  const findings: PreflightFinding[] = []
  for (const resource of resources) {
    const bounds = boundsOf(resource.object, names)
    if (bounds.kind === 'bounds') groups.push({ ...resource, min: bounds.min, max: bounds.max })
    if (bounds.kind === 'invalid') findings.push(finding('fail', resource.ref, ...withFix(bounds.reason)))
  }
  return { groups, findings }
}

/** @param architecture of nodes whose template names none. */
export function findingsOfGroup(
  group: CheckedGroup,
  { names }: Pick<HubScope, 'names'>,
  architecture: Architecture,
): readonly PreflightFinding[] {
  const { ref, object, cluster, min, max } = group
  const replicas = object.spec?.replicas
  const warn = (message: string, fix: string) => finding('warn', ref, message, fix)
  const paused = pauseOf(object, fixedNames, cluster)
  const owner = ownerOfReplicas(object, names)
  return [
    ...(paused === undefined
      ? []
      : [
          warn(
            `${paused}, and nothing is written until that ends`,
            'end the pause when it is no longer needed',
          ),
        ]),
    ...(replicas === undefined
      ? [
          finding(
            'fail',
            ref,
            'spec.replicas is not set, so that nothing is written',
            `${kubectl('scale', ref)} --replicas=${Math.max(min, object.status?.replicas ?? 0)}`,
          ),
        ]
      : []),
    ...(replicas !== undefined && replicas < min
      ? [
          warn(
            `spec.replicas is ${replicas}, less than ${min} of annotation ${names.minSize}`,
            `${kubectl('scale', ref)} --replicas=${min}, or run the autoscaler with --enforce-node-group-min-size`,
          ),
        ]
      : []),
    ...(replicas !== undefined && replicas > max
      ? [
          warn(
            `spec.replicas is ${replicas}, more than ${max} of annotation ${names.maxSize}: it does not grow, and shrinks once nodes are not needed`,
            `${annotate(ref, `${names.maxSize}=${replicas}`)}, or lower spec.replicas`,
          ),
        ]
      : []),
    ...(owner === undefined ? [] : [warn(...withFix(owner, ': '))]),
    ...ownerWarnings(object, names).map((each) => warn(...withFix(each, ': '))),
    ...groupOptionsOf(object, names).warnings.map((each) => warn(...withFix(each))),
    ...capacityFindings(group, architecture),
  ]
}

/** What the first node will be: needed at 0 replicas, and to come back from there. */
function capacityFindings(
  { ref, object, facts, min }: CheckedGroup,
  architecture: Architecture,
): readonly PreflightFinding[] {
  const capacity = groupCapacityOf(object, facts)
  if (capacity.kind === 'known') {
    const warnings: string[] = []
    exampleOf(object, facts, capacity.capacity, architecture, warnings)
    return warnings.map((each) => finding('warn', ref, ...withFix(each)))
  }
  const isEmpty = (object.spec?.replicas ?? object.status?.replicas ?? 0) === 0
  if (!isEmpty && min > 0) return []
  const consequence = isEmpty
    ? 'it has no replicas, and cannot grow while nobody knows what its nodes have'
    : 'it may shrink to 0 replicas, and cannot grow from there once its last node is forgotten'
  const { cpu, memory } = capacityAnnotations
  return [
    finding(
      isEmpty ? 'fail' : 'warn',
      ref,
      `${consequence}: ${capacity.reason}`,
      annotate(ref, `${cpu}=CPUS`, `${memory}=AMOUNT`),
    ),
  ]
}

/** Problems of the scope as a whole. */
export function scopeFindings(
  scope: HubScope,
  resources: readonly CheckedResource[],
  groups: readonly CheckedGroup[],
  invalid: number,
): readonly PreflightFinding[] {
  const { names, specs, hub } = scope
  const flags = specs.length === 0 ? '' : ' that --node-group-auto-discovery selects'
  const unmatched = specs.filter((spec) => !resources.some(({ object }) => matchesSpec(object, spec, names)))
  const findings = unmatched.map(
    (spec): PreflightFinding => ({
      status: 'fail',
      message: `--node-group-auto-discovery=${specText(spec)} selects no MachineDeployment, MachineSet or MachinePool in ${hub.server}`,
      fix: 'correct namespace, clusterName and labels: all must be those of the object itself',
    }),
  )
  if (groups.length > 0 || invalid > 0 || (resources.length === 0 && unmatched.length > 0)) return findings
  const [first] = resources
  return [
    ...findings,
    {
      status: 'fail',
      message:
        first === undefined
          ? `there is no MachineDeployment, MachineSet or MachinePool in ${hub.server}`
          : `no object is a node group: none of ${resources.length}${flags} has annotation ${names.maxSize} above 0`,
      fix:
        first === undefined
          ? 'create one, or name the management cluster with --cloud-config'
          : annotate(first.ref, `${names.minSize}=MIN`, `${names.maxSize}=MAX`),
    },
  ]
}

/** Whether the groups are of the Cluster that the Nodes are of. Others are left alone. */
export function clusterFindings(
  { names, specs, hub }: HubScope,
  groups: readonly CheckedGroup[],
  nodes: readonly Node[],
): readonly PreflightFinding[] {
  const own = new Set(nodes.flatMap((node) => clusterOfNode(node, names) ?? []))
  const owned = groups.filter(({ object }) => clusterNameOf(object, names) !== '')
  const clusters = [...new Set(owned.map(({ object }) => clusterKeyOf(object, names)))]
  const fix =
    'name it with --node-group-auto-discovery=clusterapi:namespace=NAMESPACE,clusterName=NAME, and check --kubeconfig and --cloud-config'
  if (own.size > 0 && clusters.length > 0 && !clusters.some((each) => own.has(each)))
    return [
      {
        status: 'fail',
        message: `the Nodes are of Cluster ${[...own].join(', ')}, and the node groups in ${hub.server} of ${clusters.join(', ')}`,
        fix,
      },
    ]
  const isNamed = specs.some(
    ({ namespace, clusterName }) => namespace !== undefined && clusterName !== undefined,
  )
  if (own.size > 0 || clusters.length < 2 || isNamed) return []
  return [
    {
      status: 'warn',
      message: `Clusters ${clusters.join(' and ')} have node groups, and no Node tells which of them this is: nothing is removed until one does`,
      fix,
    },
  ]
}

function specText({ namespace, clusterName, labels }: HubScope['specs'][number]): string {
  const parts = [
    ...(namespace === undefined ? [] : [`namespace=${namespace}`]),
    ...(clusterName === undefined ? [] : [`clusterName=${clusterName}`]),
    ...Object.entries(labels).map(([key, value]) => `${key}=${value}`),
  ]
  return `clusterapi:${parts.join(',')}`
}

function finding(
  status: PreflightFinding['status'],
  ref: GroupRef,
  message: string,
  fix: string,
): PreflightFinding {
  return { status, message: `${groupIdOf(ref)}: ${message}`, fix }
}

function kubectl(verb: string, { kind, namespace, name }: GroupRef): string {
  return `kubectl --namespace ${namespace} ${verb} ${kind.toLowerCase()} ${name}`
}

function annotate(ref: GroupRef, ...annotations: readonly string[]): string {
  return `${kubectl('annotate', ref)} --overwrite ${annotations.join(' ')}`
}

/** Splits a notice of the log, which ends with the fix. */
function withFix(notice: string, before: '; ' | ': ' = '; '): readonly [message: string, fix: string] {
  const at = before === '; ' ? notice.lastIndexOf(before) : notice.indexOf(before)
  return at < 0 ? [notice, 'correct it'] : [notice.slice(0, at), notice.slice(at + before.length)]
}
