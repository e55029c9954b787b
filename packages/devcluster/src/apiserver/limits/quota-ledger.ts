import type { Container, Pod } from '@tenon/api'
import type { Clock, Logger } from '@tenon/runtime'
import { ApiError, type StoredObject } from '../../contract.ts'
import { type Change, type Collection, namespacePrefix, type Store } from '../../storage/index.ts'
import type { Served } from '../kinds/registry.ts'
import { forbidden } from '../http/status.ts'
import { addAmounts, type Amounts, amountsOf, amountText } from './amounts.ts'
import { collectionsOf, type ResourceQuota, usageOf } from './quota-usage.ts'

/** Changes within this time are written together. */
const reportDelayMs = 100

/** A quota and its current use. */
interface Account {
  readonly quota: ResourceQuota
  readonly hard: Amounts
  readonly collections: ReadonlySet<string>
  readonly used: Amounts
}

/** What the ledger needs. */
interface LedgerParts {
  readonly clock: Clock
  readonly logger: Logger
  readonly store: Store
}

/** Writes the status of a quota. */
type QuotaReport = (namespace: string, name: string, status: ResourceQuota['status']) => void

/**
 * The use of every ResourceQuota, updated with each commit, so that a creation need not count objects. Refusals and
 * `status.used` have the same figures.
 */
export class QuotaLedger {
  readonly #ctx: LedgerParts
  readonly #report: QuotaReport
  readonly #accounts = new Map<string, Map<string, Account>>()
  readonly #dirty = new Map<string, Account>()
  readonly #unfollow: () => void
  #cancelReport: (() => void) | undefined

  constructor(ctx: LedgerParts, report: QuotaReport) {
    this.#ctx = ctx
    this.#report = report
    ctx.store.collection('resourcequotas').scan({}, (object) => {
      this.#open(object)
      return true
    })
    this.#unfollow = ctx.store.onCommit((collection, change) => this.#follow(collection, change))
  }

  stop(): void {
    this.#unfollow()
    this.#cancelReport?.()
  }

  /**
   * Refuses a creation or update that exceeds a quota of its namespace.
   * @throws ApiError 403.
   */
  check(served: Served, object: StoredObject, old?: StoredObject): void {
    const accounts = this.#accounts.get(object.metadata.namespace ?? '')
    for (const account of accounts?.values() ?? []) {
      if (!account.collections.has(served.collection)) continue
      const why = refusal(account, served.collection, object, old)
      if (why !== undefined) throw forbidden(served.definition, object.metadata.name, why)
    }
  }

  #follow({ id }: Collection, { type, object, previous }: Change): void {
    if (id === 'resourcequotas') this.#followQuota(type, object)
    const accounts = this.#accounts.get(object.metadata.namespace ?? '')
    if (accounts === undefined) return
    for (const account of accounts.values()) {
      if (!account.collections.has(id) || account.quota.metadata.uid === object.metadata.uid) continue
      const before = previous === undefined ? none : usageOf(account.quota, id, previous)
      const after = type === 'DELETED' ? none : usageOf(account.quota, id, object)
      if (move(account.used, before, after)) this.#mark(account)
    }
  }

  #followQuota(type: Change['type'], quota: ResourceQuota): void {
    const { namespace = '', name } = quota.metadata
    const accounts = this.#accounts.get(namespace)
    const known = accounts?.get(name)
    if (type === 'DELETED') {
      accounts?.delete(name)
      if (accounts?.size === 0) this.#accounts.delete(namespace)
      return
    }
    // Status writes do not change the spec.
    if (known?.quota.spec !== quota.spec || known?.quota.metadata.uid !== quota.metadata.uid)
      this.#open(quota)
  }

  #open(quota: ResourceQuota): void {
    const { namespace = '', name } = quota.metadata
    const hard = amountsOf(quota.spec?.hard)
    const used: Amounts = new Map([...hard.keys()].map((resource) => [resource, 0n]))
    const account = { quota, hard, used, collections: collectionsOf(quota) }
    for (const id of account.collections) {
      this.#ctx.store.collection(id).scan({ prefix: namespacePrefix(namespace) }, (object) => {
        addAmounts(used, usageOf(quota, id, object))
        return true
      })
    }
    const accounts = this.#accounts.get(namespace) ?? new Map<string, Account>()
    this.#accounts.set(namespace, accounts.set(name, account))
    this.#mark(account)
  }

  #mark(account: Account): void {
    const { namespace = '', name } = account.quota.metadata
    this.#dirty.set(`${namespace}/${name}`, account)
    this.#cancelReport ??= this.#ctx.clock.after(reportDelayMs, () => this.#reportAll())
  }

  #reportAll(): void {
    this.#cancelReport = undefined
    const dirty = [...this.#dirty.values()]
    this.#dirty.clear()
    for (const { quota, used } of dirty) {
      const { namespace = '', name } = quota.metadata
      const texts = [...used].map(([resource, amount]) => [resource, amountText(resource, amount)])
      try {
        this.#report(namespace, name, { hard: quota.spec?.hard ?? {}, used: Object.fromEntries(texts) })
      } catch (error) {
        // The quota or its namespace was deleted meanwhile.
        if (!(error instanceof ApiError)) throw error
        this.#ctx.logger.debug('quota status not written', { namespace, quota: name, error })
      }
    }
  }
}

const none: Amounts = new Map()

/** Subtracts `before` and adds `after`; returns whether that changes anything. */
function move(used: Amounts, before: Amounts, after: Amounts): boolean {
  let changed = false
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const delta = (after.get(name) ?? 0n) - (before.get(name) ?? 0n)
    if (delta === 0n) continue
    used.set(name, (used.get(name) ?? 0n) + delta)
    changed = true
  }
  return changed
}

function refusal(
  account: Account,
  collection: string,
  object: StoredObject,
  old: StoredObject | undefined,
): string | undefined {
  const { quota, hard, used } = account
  const usage = usageOf(quota, collection, object)
  const before = old === undefined ? none : usageOf(quota, collection, old)
  if (collection === 'pods' && old === undefined && isCounted(quota, usage, object)) {
    const silent = unstated(hard, object as unknown as Pod)
    if (silent !== '') return `failed quota: ${quota.metadata.name}: must specify ${silent}`
  }
  const exceeded = [...usage.keys()].sort().flatMap((name) => {
    const wanted = (usage.get(name) ?? 0n) - (before.get(name) ?? 0n)
    const taken = used.get(name) ?? 0n
    const bound = hard.get(name) ?? 0n
    return wanted > 0n && taken + wanted > bound ? [{ name, wanted, taken, bound }] : []
  })
  if (exceeded.length === 0) return undefined
  const listed = (of: (each: (typeof exceeded)[number]) => bigint) =>
    exceeded.map((each) => `${each.name}=${amountText(each.name, of(each))}`).join(',')
  const requested = listed((each) => each.wanted)
  const now = listed((each) => each.taken)
  const limited = listed((each) => each.bound)
  return `exceeded quota: ${quota.metadata.name}, requested: ${requested}, used: ${now}, limited: ${limited}`
}

/** Whether the quota counts the object. */
function isCounted(quota: ResourceQuota, usage: Amounts, object: StoredObject): boolean {
  if (usage.size > 0) return true
  const hard = { ...quota.spec?.hard, 'count/pods': '1' }
  return usageOf({ ...quota, spec: { ...quota.spec, hard } }, 'pods', object).size > 0
}

/** Resources that every container must specify if a quota limits them. */
const stated = ['cpu', 'limits.cpu', 'limits.memory', 'memory', 'requests.cpu', 'requests.memory']

function unstated(hard: Amounts, { spec }: Pod): string {
  const states = (list: 'requests' | 'limits', name: string, container: Container) =>
    Object.hasOwn(container.resources?.[list] ?? {}, name) ||
    Object.hasOwn(spec.resources?.[list] ?? {}, name)
  const containers = [...spec.containers, ...(spec.initContainers ?? [])]
  return stated
    .filter((resource) => hard.has(resource))
    .flatMap((resource) => {
      const [, list = 'requests', name = resource] = /^(requests|limits)\.(.+)$/.exec(resource) ?? []
      const silent = containers.filter(
        (container) => !states(list === 'limits' ? 'limits' : 'requests', name, container),
      )
      if (silent.length === 0) return []
      return [
        `${resource} for: ${silent
          .map((container) => container.name)
          .sort()
          .join(',')}`,
      ]
    })
    .join('; ')
}
