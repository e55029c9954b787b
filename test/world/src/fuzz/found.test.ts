/** Cases that `npm run fuzz` has found, made smaller: `found/*.json`, each as `--case` replays it. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Case } from './case.ts'
import { judge } from './judge.ts'

/** What holds of each, by file. */
const found: ReadonlyMap<string, string> = new Map([
  ['moved-again.json', 'RPT-26 pods that consolidation has moved are not moved again at once'],
  [
    'moved-elsewhere.json',
    'RPT-26 moved pods are left alone where they come to, also if that is not where they were to go',
  ],
  [
    'job-failed-of-move.json',
    'RPT-26 a Job that fails because its pods were moved does not have those moved again that came along',
  ],
  [
    'job-failed-of-drift.json',
    'RPT-26 a Job that fails because a drifted node went does not have the pods moved again that came along',
  ],
  [
    'bought-before-found.json',
    'RPT-1 a second node that was bought before the first was found too small holds nothing up',
  ],
  [
    'same-words.json',
    'RPT-4 a pod that is refused in the same words before and after its node opens keeps no node',
  ],
  [
    'refused-apart.json',
    'RPT-4 pods that must not be together and are refused for a reason of the scheduler buy a node each',
  ],
  [
    'shared-late-claim.json',
    'RPT-4 a pod whose shared volume came to be in another zone than its node gets a node there at once',
  ],
  [
    'volumes-taken.json',
    'RPT-3 a pod whose node attached the volumes of others in place of its own gets another node at once',
  ],
  [
    'daemons-without-room.json',
    'an instance without room for the pods of DaemonSets would not have helped the pod that waits',
  ],
  [
    'limit-by-catalogue.json',
    'a type that was never there and by the catalogue exceeds a limit would not have helped the pod that waits',
  ],
  [
    'zones-of-a-full-pool.json',
    'SCH-154 zones that only a NodePool at its limit sells hold back the pods of a spread',
  ],
  [
    'value-of-another-pool.json',
    'a value that only a NodePool out of reach lists would not have helped the pod that waits',
  ],
  [
    'term-before-toleration.json',
    'a pod whose last node affinity term nothing meets runs on a NodePool with a PreferNoSchedule taint',
  ],
  [
    'zones-by-name.json',
    'a plan that opens another zone because of its name, and leaves out a pod that spreads, is not at fault',
  ],
  [
    'refused-group-going.json',
    'a refused NodeGroup that is still being deleted says nothing about the other flavors',
  ],
])
const folder = new URL('found/', import.meta.url)

test('every case that was found is played', () => {
  assert.deepEqual(readdirSync(folder).toSorted(), [...found.keys()].toSorted())
})

for (const [file, title] of found)
  test(title, async () => {
    const { findings } = await judge(JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Case)
    assert.deepEqual(findings, [])
  })
