import type { JournalEntry } from '@tenon/operator'

const hourMs = 3_600_000
/** A name and a message that a page must not take for HTML. */
const hostile = '<img src=x onerror=alert(1)>'

/** Ten days in which web gets a node every day, and loses it half a day later. */
export function tenDays(nowMs: number): readonly JournalEntry[] {
  const entries: JournalEntry[] = []
  const add = (ms: number, kind: JournalEntry['kind'], more: Partial<JournalEntry>) => {
    const at = new Date(ms).toISOString()
    const own = { reason: 'Provisioned', message: hostile, nodeClaims: [], nodes: [], currency: 'EUR' }
    entries.push({ id: `e${entries.length}`, at, kind, ...own, ...more })
  }
  for (let day = 10; day >= 1; day--) {
    const ms = nowMs - day * 24 * hourMs
    const [name, decision] = [`blue-${day}`, `d${day}`]
    const workloads = [{ namespace: 'shop', workload: 'deployment/web', pods: 12 }]
    add(ms, 'spend', {
      spend: [
        {
          nodePool: 'blue',
          pricePerHour: 1,
          unpriced: 0,
          shares: [
            { namespace: 'shop', workload: 'deployment/web', pricePerHour: 0.5, labels: { team: 'shop' } },
            { namespace: hostile, workload: `job/${hostile}`, pricePerHour: 0.2, labels: {} },
          ],
        },
      ],
    })
    add(ms + hourMs, 'decision', {
      id: decision,
      decision,
      pods: { count: 12, names: ['shop/web-1'], workloads },
      pricePerHour: { before: 0, after: 2 },
    })
    add(ms + hourMs + 1, 'launch', { nodeClaims: [name], nodePool: 'blue', decision })
    for (const kind of ['launched', 'registered', 'initialized'] as const)
      add(ms + hourMs + 2, kind, { nodeClaims: [name], nodePool: 'blue', pricePerHour: { after: 2 } })
    add(ms + 13 * hourMs, 'removal', {
      nodeClaims: [name],
      nodePool: 'blue',
      reason: 'Empty',
      pricePerHour: { before: 2, after: 0 },
    })
    add(ms + 13 * hourMs, 'removed', { nodeClaims: [name], nodePool: 'blue', pricePerHour: { before: 2 } })
  }
  return entries
}
