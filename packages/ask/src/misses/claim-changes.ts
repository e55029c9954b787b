/** Changes of a pod's device claims (devices.md 3.9). */
import {
  type DeviceClaim,
  type DeviceSubRequest,
  type DeviceTaint,
  type Pod,
  type ResourceClaim,
  taintText,
} from '@tenon/api'
import type { PodReason } from '@tenon/engine'
import type { Operation } from 'rfc6902'
import { type Change, type ChangeTarget, pointer } from './change.ts'

type Shortage = Extract<PodReason, { kind: 'devices' }>['because']

/** Where a pod's claim is defined. */
export interface ClaimSource {
  readonly claim: Pick<ResourceClaim, 'spec'>
  readonly target: Extract<ChangeTarget, { kind: 'resourceClaim' | 'resourceClaimTemplate' }>
}

/** Finds where a claim (`namespace/name`) of a pod is defined; undefined if the pod does not say. */
export function sourceOf(
  pod: Pod,
  name: string,
  claims: ReadonlyMap<string, Pick<ResourceClaim, 'spec'>>,
): ClaimSource | undefined {
  const claim = claims.get(name)
  const { namespace = '' } = pod.metadata
  const own = name.slice(namespace.length + 1)
  const made = pod.status?.resourceClaimStatuses?.find(({ resourceClaimName }) => resourceClaimName === own)
  const reference = pod.spec.resourceClaims?.find(
    (each) => each.resourceClaimName === own || (made !== undefined && each.name === made.name),
  )
  if (claim === undefined || reference === undefined) return undefined
  const { resourceClaimTemplateName: template } = reference
  const target =
    template === undefined
      ? ({ kind: 'resourceClaim', namespace, name: own } as const)
      : ({ kind: 'resourceClaimTemplate', namespace, name: template } as const)
  return { claim, target }
}

/**
 * Single changes of a claim. Its spec is immutable, so the claim has to be recreated.
 * @param counts smaller numbers of devices to try.
 */
export function claimChanges(
  { claim, target }: ClaimSource,
  because: Shortage,
  counts: readonly number[],
): readonly Change[] {
  const devices = claim.spec?.devices ?? {}
  const writer = new ClaimWriter(target)
  return [
    ...waysOf(devices).flatMap((way) => wayChanges(way, writer, shortageFor(way.name, because), counts)),
    ...(devices.constraints ?? []).map(({ matchAttribute, distinctAttribute = '' }, index, { length }) =>
      writer.change(
        'dropDeviceConstraint',
        ['constraints', index],
        `leave out the constraint on ${matchAttribute ?? distinctAttribute}`,
        { op: 'remove', path: length === 1 ? ['constraints'] : ['constraints', index] },
      ),
    ),
  ]
}

type Path = readonly (string | number)[]

/** One way to satisfy a request, with its path in the claim. */
interface Way {
  readonly name: string
  readonly path: Path
  readonly way: DeviceSubRequest
}

function waysOf({ requests = [] }: DeviceClaim): readonly Way[] {
  return requests.flatMap(({ name, exactly, firstAvailable = [] }, index): readonly Way[] =>
    exactly !== undefined
      ? [{ name, path: ['requests', index, 'exactly'], way: exactly }]
      : firstAvailable.map((way, at) => ({
          name: `${name}/${way.name ?? ''}`,
          path: ['requests', index, 'firstAvailable', at],
          way,
        })),
  )
}

type WhyWay = Extract<
  NonNullable<Extract<Shortage, { kind: 'noDevices' }>['shortage']>,
  { kind: 'request' }
>['ways'][number]['why']

function shortageFor(name: string, because: Shortage): WhyWay | undefined {
  const shortage = because.kind === 'noDevices' ? because.shortage : undefined
  return shortage?.kind === 'request' ? shortage.ways.find(({ request }) => request === name)?.why : undefined
}

/** @param counts smaller numbers of devices to try. */
function wayChanges(
  { name, path, way }: Way,
  writer: ClaimWriter,
  why: WhyWay | undefined,
  counts: readonly number[],
): readonly Change[] {
  const { selectors = [], tolerations, capacity, count = 1 } = way
  const of = `of request ${name}`
  const changes = selectors.map(({ cel }, index) =>
    writer.change(
      'dropDeviceSelector',
      [...path, 'selectors', index],
      `leave out the selector ${cel?.expression ?? ''} ${of}`,
      { op: 'remove', path: selectors.length === 1 ? [...path, 'selectors'] : [...path, 'selectors', index] },
    ),
  )
  if (way.allocationMode !== 'All')
    for (const fewer of counts.filter((each) => each < count))
      changes.push(
        writer.change(
          'lowerDeviceCount',
          [...path, 'count'],
          `ask for ${fewer} devices instead of ${count} in request ${name}`,
          { op: 'replace', path: [...path, 'count'], value: fewer },
        ),
      )
  if (why?.kind === 'taints')
    for (const taint of why.taints) changes.push(tolerating(taint, path, tolerations, { writer, of }))
  if (why?.kind === 'capacity' && why.most !== undefined && capacity?.requests !== undefined)
    changes.push(
      writer.change(
        'lowerDeviceCapacity',
        [...path, 'capacity', 'requests', why.name],
        `ask for ${why.most} of capacity ${why.name} instead of ${why.asked} in request ${name}`,
        { op: 'replace', path: [...path, 'capacity', 'requests', why.name], value: why.most },
      ),
    )
  return changes
}

function tolerating(
  { key, value = '', effect }: DeviceTaint,
  path: Path,
  tolerations: DeviceSubRequest['tolerations'],
  { writer, of }: { readonly writer: ClaimWriter; readonly of: string },
): Change {
  const toleration = {
    key,
    ...(value === '' ? { operator: 'Exists' } : { operator: 'Equal', value }),
    effect,
  }
  const hasSome = (tolerations ?? []).length > 0
  const words = effect === 'None' ? key : taintText({ key, value, effect })
  return writer.change(
    'addDeviceToleration',
    [...path, 'tolerations'],
    `tolerate ${words} in the devices ${of}`,
    {
      op: 'add',
      path: hasSome ? [...path, 'tolerations', '-'] : [...path, 'tolerations'],
      value: hasSome ? toleration : [toleration],
    },
  )
}

class ClaimWriter {
  readonly #target: ClaimSource['target']

  constructor(target: ClaimSource['target']) {
    this.#target = target
  }

  /** @param field relative to the devices of the claim, as is the operation's path. */
  change(
    kind: Change['kind'],
    field: Path,
    words: string,
    operation: { readonly op: 'add' | 'remove' | 'replace'; readonly path: Path; readonly value?: unknown },
  ): Change {
    const root = this.#target.kind === 'resourceClaim' ? ['spec', 'devices'] : ['spec', 'spec', 'devices']
    const { op, path, value } = operation
    const at = pointer(...root, ...path)
    const patch: Operation = op === 'remove' ? { op, path: at } : { op, path: at, value }
    const { kind: of, namespace, name } = this.#target
    const what = of === 'resourceClaim' ? 'ResourceClaim' : 'ResourceClaimTemplate'
    return {
      kind,
      target: this.#target,
      field: fieldText([...root, ...field]),
      words: `${words} (make ${what} ${namespace}/${name} again)`,
      operations: [patch],
    }
  }
}

function fieldText(path: Path): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`))
    .join('')
    .slice(1)
}

/** The operations with paths relative to the claim's spec. */
export function claimOperations({ operations, target }: Change): readonly Operation[] {
  if (target.kind !== 'resourceClaimTemplate') return operations
  return operations.map((each) => ({ ...each, path: each.path.slice('/spec'.length) }))
}
