/** The admission plug-in PodSecurity, with its defaults: labels of namespaces decide, and nobody is exempt. */
import { ownValue } from '@tenon/api'
import type { FieldError, StoredObject } from '../../../contract.ts'
import { keyOf, namespacePrefix } from '../../../storage/index.ts'
import { sameJson } from '../../equality.ts'
import type { ServerContext, WriteOptions } from '../../context.ts'
import { forbidden, invalid } from '../../http/status.ts'
import { podTemplatePaths, valueAt } from '../../kinds/pod-templates.ts'
import type { AdmittedWrite } from '../index.ts'
import { containersOf, type Level, levels, type SecuredPod, type Violation, violations } from './standards.ts'

const prefix = 'pod-security.kubernetes.io/'

/** The most pods of a namespace that are checked when its labels change. */
const mostChecked = 3000

/** A level in one version. */
interface Policy {
  readonly level: Level
  /** `latest` or `v1.N`. */
  readonly version: string
}

/** What the labels of a namespace ask for. */
interface Policies {
  readonly enforce: Policy
  readonly warn: Policy
  readonly errors: readonly FieldError[]
}

/**
 * Refuses pods that violate the level that their namespace enforces, and warns of pods and templates that violate
 * the level it warns of. Labels of namespaces are checked, and pods that a new level would refuse are named.
 * @throws ApiError like kube-apiserver.
 */
export function checkPodSecurity(ctx: ServerContext, write: AdmittedWrite, options: WriteOptions): void {
  const { served, subresource, object } = write
  if (subresource !== undefined || object === undefined || !ctx.checksPods) return
  if (served.collection === 'namespaces') checkNamespace(ctx, write, object, options)
  else if (served.collection === 'pods') checkPod(ctx, write, object, options)
  else {
    const path = ownValue(podTemplatePaths, served.collection)
    if (path === undefined || options.internal) return
    const { warn } = policiesOf(ctx, object)
    warnOf(warn, valueAt(object, path) ?? {}, options)
  }
}

function checkPod(
  ctx: ServerContext,
  { served, oldObject }: AdmittedWrite,
  object: StoredObject,
  options: WriteOptions,
): void {
  const pod: SecuredPod = object
  if (oldObject !== undefined && !isSignificant(pod, oldObject)) return
  const { enforce, warn } = policiesOf(ctx, object)
  const found = violationsOf(enforce, pod)
  if (found.length > 0) {
    const { name } = object.metadata
    throw forbidden(served.definition, name, `violates PodSecurity ${textOf(enforce, found)}`)
  }
  if (!options.internal) warnOf(warn, pod, options)
}

function warnOf(policy: Policy, pod: SecuredPod, options: WriteOptions): void {
  const found = violationsOf(policy, pod)
  if (found.length > 0) options.warnings.push(`would violate PodSecurity ${textOf(policy, found)}`)
}

/** Updates may only change images and add ephemeral containers, as far as the standards are concerned. */
function isSignificant(pod: SecuredPod, old: SecuredPod): boolean {
  const imagesOf = (one: SecuredPod) => containersOf(one).map(({ name, image }) => [name, image])
  return !sameJson(imagesOf(pod), imagesOf(old))
}

function checkNamespace(
  ctx: ServerContext,
  { served, oldObject }: AdmittedWrite,
  namespace: StoredObject,
  options: WriteOptions,
): void {
  const { enforce, errors } = policiesIn(namespace)
  const before = oldObject === undefined ? undefined : policiesIn(oldObject)
  const { name } = namespace.metadata
  // Namespaces of a data directory may have labels that were not checked: whoever changes others is not refused.
  if (errors.length > 0 && !sameJson(errors, before?.errors ?? []))
    throw invalid(served.definition, name, errors)
  if (before === undefined || options.internal || !canRefuseMore(enforce, before.enforce)) return
  options.warnings.push(...violatingPods(ctx, name, enforce))
}

function canRefuseMore(now: Policy, before: Policy): boolean {
  if (now.level === 'privileged') return false
  return now.version !== before.version || levels.indexOf(now.level) > levels.indexOf(before.level)
}

/** Warnings that name existing pods which violate a policy, those with the same reasons together. */
function violatingPods(ctx: ServerContext, namespace: string, policy: Policy): readonly string[] {
  const pods: StoredObject[] = []
  ctx.store.collection('pods').scan({ prefix: namespacePrefix(namespace) }, (pod) => {
    pods.push(pod)
    return true
  })
  const namesByReasons = new Map<string, string[]>()
  for (const pod of onePerControllerFirst(pods).slice(0, mostChecked)) {
    const reasons = violationsOf(policy, pod).map(({ reason }) => reason)
    if (reasons.length === 0) continue
    const text = reasons.join(', ')
    const names = namesByReasons.get(text) ?? []
    names.push(pod.metadata.name)
    namesByReasons.set(text, names)
  }
  const lines = [...namesByReasons].map(([reasons, names]) => {
    const [first] = names.toSorted()
    const others = names.length - 1
    const more = others === 0 ? '' : ` (and ${others} other pod${others > 1 ? 's' : ''})`
    return `${first}${more}: ${reasons}`
  })
  return [
    ...(pods.length > mostChecked
      ? [
          `new PodSecurity enforce level only checked against the first ${mostChecked} of ${pods.length} existing pods`,
        ]
      : []),
    ...(lines.length > 0
      ? [
          `existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${nameOf(policy)}"`,
          ...lines.toSorted(),
        ]
      : []),
  ]
}

/** Pods of one controller mostly violate the same, so the first of each tells most where not all are checked. */
function onePerControllerFirst(pods: readonly StoredObject[]): readonly StoredObject[] {
  const seen = new Set<string>()
  const repeated: StoredObject[] = []
  const first = pods.filter((pod) => {
    const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller === true)
    if (owner === undefined) return true
    if (!seen.has(owner.uid)) return Boolean(seen.add(owner.uid))
    repeated.push(pod)
    return false
  })
  return [...first, ...repeated]
}

function policiesOf(ctx: ServerContext, { metadata }: StoredObject): Policies {
  const namespace = ctx.store.collection('namespaces').get(keyOf(undefined, metadata.namespace ?? ''))
  return policiesIn(namespace)
}

/** The policies of a namespace. Labels that are not valid enforce the strictest level, and warn of nothing. */
function policiesIn(namespace: StoredObject | undefined): Policies {
  const errors: FieldError[] = []
  const labels = namespace?.metadata.labels
  const read = (mode: string, fallback: Level): Partial<Policy> => {
    const level = ownValue(labels, `${prefix}${mode}`)
    const version = ownValue(labels, `${prefix}${mode}-version`)
    const isLevel = level === undefined || levels.includes(level as Level)
    const isVersion = version === undefined || version === 'latest' || minorOf(version) !== undefined
    if (!isLevel) errors.push(labelError(mode, level, `must be one of ${levels.join(', ')}`))
    if (!isVersion) errors.push(labelError(`${mode}-version`, version, 'must be "latest" or "v1.x"'))
    return {
      ...(level !== undefined && { level: isLevel ? (level as Level) : fallback }),
      ...(version !== undefined && { version: isVersion ? version : 'latest' }),
    }
  }
  const enforced = read('enforce', 'restricted')
  read('audit', 'privileged')
  const warned = read('warn', 'privileged')
  const enforce = { level: 'privileged', version: 'latest', ...enforced } as const
  // Workloads would be accepted without a word and their pods refused, if only the enforced level is stated.
  const warn =
    warned.level === undefined ? { ...enforce, ...warned } : ({ version: 'latest', ...warned } as Policy)
  return { enforce, warn, errors }
}

function labelError(label: string, value: unknown, detail: string): FieldError {
  return { field: `metadata.labels[${prefix}${label}]`, kind: 'invalid', value, detail }
}

const largestMinor = 2n ** 63n - 1n

/** The N of `v1.N`. */
function minorOf(version: string): number | undefined {
  const [, digits] = /^v1\.(0|[1-9]\d*)$/.exec(version) ?? []
  return digits === undefined || BigInt(digits) > largestMinor ? undefined : Number(digits)
}

function violationsOf({ level, version }: Policy, pod: SecuredPod): readonly Violation[] {
  return violations(pod, level, minorOf(version) ?? Number.MAX_SAFE_INTEGER)
}

const nameOf = ({ level, version }: Policy): string => `${level}:${version}`

function textOf(policy: Policy, found: readonly Violation[]): string {
  return `"${nameOf(policy)}": ${found.map(({ reason, detail }) => `${reason} (${detail})`).join(', ')}`
}
