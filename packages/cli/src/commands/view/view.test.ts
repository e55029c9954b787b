import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import { runCommand } from '../../testing/command.test-support.ts'
import { snapshot } from '../../testing/snapshot.test-support.ts'
import { assertPrinted } from '../../testing/printed.test-support.ts'
import type { PrintedView } from './document.ts'
import { PlayedScreen, type ScreenOptions } from './screen.test-support.ts'

let folder = ''
let file = ''

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-view-'))
  file = join(folder, 'cluster.jsonl')
  await writeSnapshot(file, {
    ...snapshot,
    objects: snapshot.objects.map((object) =>
      object.metadata.name === 'strange'
        ? { ...object, metadata: { ...object.metadata, name: '節点-🦊', labels: { team: 'a\u001b[31mb' } } }
        : object,
    ),
  })
})

after(async () => {
  await rm(folder, { recursive: true, force: true })
})

async function onScreen(
  options: ScreenOptions & { readonly args?: readonly string[] },
  look: (screen: PlayedScreen) => Promise<void>,
): Promise<void> {
  const screen = new PlayedScreen(['-s', file, ...(options.args ?? [])], options)
  try {
    await screen.shows((text) => text.includes('NAME'))
    await look(screen)
  } finally {
    screen.close()
  }
}

const head = [
  '2 nodes  EUR 0.050/hour EUR 36.500/month ?1',
  'cpu                   1.5/4  37.5% ███████████░░░░░░░░░░░░░░░░░░░',
  '4 pods: 1 pending, 3 running, 3 bound',
  '0 decisions/min · not paused · next: nothing',
]

for (const NO_COLOR of ['', '1'])
  test(`CON-1 header and rows at 80x24 ${NO_COLOR === '' ? 'with' : 'without'} colour`, async () => {
    await onScreen({ env: { NO_COLOR } }, (screen) => {
      const lines = screen.lines()
      assert.deepEqual(lines.slice(0, 4), head)
      assert.deepEqual(lines.slice(6, 9), [
        '  NAME         POOL  CPU              PODS  TYPE    EUR/H  STATUS  AGE  WHY KEPT',
        '> n1           web   ████████░░  75%   3/?  small  0.0500  Ready   60m  Not yet',
        '  節点-🦊      -     ░░░░░░░░░░   0%   0/?  -           ?  Ready   60m',
      ])
      // oxlint-disable-next-line no-control-regex
      assert.equal(/\u001b\[3[0-9]/.test(screen.raw), NO_COLOR === '')
      return Promise.resolve()
    })
  })

test('CON-1 CON-10 at 200x50 there is room for zone, capacity type and labels, which colour nothing', async () => {
  const args = ['--extra-labels', 'team', '--resources', 'cpu,memory']
  await onScreen({ columns: 200, rows: 50, args }, (screen) => {
    const lines = screen.lines()
    assert.equal(lines.length, 50)
    assert.match(lines[2] ?? '', /^memory +3Gi\/8Gi +37\.5%/)
    assert.match(lines[7] ?? '', /NAME .* ZONE +CAPACITY .* TEAM/)
    assert.match(lines[9] ?? '', /memory 3Gi\/4Gi +████████░░ {2}75%/)
    assert.match(screen.text(), /a\\x1b\[31mb/)
    return Promise.resolve()
  })
})

/** Whole screens, without the empty lines between table and foot. */
const frames: readonly (readonly [columns: number, rows: number, lines: readonly string[]])[] = [
  [
    60,
    16,
    [
      '2 nodes  EUR 0.050/hour EUR 36.500/month ?1',
      'cpu                   1.5/4  37.5% █████████░░░░░░░░░░░░░░░░',
      '4 pods: 1 pending, 3 running, 3 bound',
      '0 decisions/min · not paused · next: nothing',
      '[nodes 2] claims pools pods decisions cost groups   snapsho…',
      '  NAME     CPU              PODS  TYPE    EUR/H  STATUS  AGE',
      '> n1       ████████░░  75%   3/?  small  0.0500  Ready   60m',
      '  節点-🦊  ░░░░░░░░░░   0%   0/?  -           ?  Ready   60m',
      'kept: Not yet',
      ': jump  / filter  Enter  Esc  d explain  y YAML  ? help',
    ],
  ],
  [
    80,
    24,
    [
      ...head,
      '[nodes 2] claims 1  pools 1  pods 1  decisions 0  cost  groups 0   snapshot of …',
      '  NAME         POOL  CPU              PODS  TYPE    EUR/H  STATUS  AGE  WHY KEPT',
      '> n1           web   ████████░░  75%   3/?  small  0.0500  Ready   60m  Not yet',
      '  節点-🦊      -     ░░░░░░░░░░   0%   0/?  -           ?  Ready   60m',
      'kept: Not yet',
      ': command  / filter  Enter down  Esc back  d explain  y YAML  ? help  q quit',
    ],
  ],
  [
    200,
    50,
    [
      ...head,
      '[nodes 2] claims 1  pools 1  pods 1  decisions 0  cost  groups 0   snapshot of 2026-11-26T12:00:00Z',
      '  NAME                      POOL  CPU              PODS  TYPE   ZONE  CAPACITY    EUR/H  STATUS  AGE  WHY KEPT',
      '> n1                        web   ████████░░  75%   3/?  small  z1    on-demand  0.0500  Ready   60m  Not yet',
      '  節点-🦊                   -     ░░░░░░░░░░   0%   0/?  -      -     -               ?  Ready   60m',
      'kept: Not yet',
      ': command  / filter  Enter down  Esc back  d explain  y YAML  ? help  q quit',
    ],
  ],
]
for (const [columns, rows, frame] of frames)
  test(`PGE-13 the frame at ${columns}x${rows}`, async () => {
    await onScreen({ columns, rows }, (screen) => {
      const lines = screen.lines()
      assert.equal(lines.length, rows)
      assert.deepEqual(
        lines.filter((line) => line !== ''),
        frame,
      )
      return Promise.resolve()
    })
  })

test('PGE-13 keys at 60x16: : jumps, / filters, d describes, y shows YAML, and L opens nothing but says so', async () => {
  await onScreen({ columns: 60, rows: 16 }, async (screen) => {
    screen.type('L')
    await screen.shows((text) => text.includes('there are no logs here: read them with kubectl logs'))
    screen.type(':po\r')
    await screen.shows((text) => text.includes('[pods 1]') && text.includes('waits'))
    screen.type(':nodes\r/n1\r')
    await screen.shows((text) => text.includes('> n1') && !text.includes('節点'))
    screen.type('y')
    await screen.shows((text) => text.includes('yaml of node/n1') && text.includes('apiVersion: v1'))
    screen.type('qd')
    await screen.shows(
      (text) => text.includes('explain node/n1') && text.includes('node/n1: It has no NodeClaim'),
    )
  })
})

test('CON-3 filters, drill-down and back keep the selection', async () => {
  await onScreen({}, async (screen) => {
    screen.type('/!web\r')
    await screen.shows((text) => text.includes('/!web') && !text.includes('n1 '))
    screen.type('\u001b')
    await screen.shows((text) => text.includes('> 節点'))
    screen.type('/-l karpenter.sh/nodepool=web\r')
    await screen.shows((text) => text.includes('> n1') && !text.includes('節点'))
    screen.type('\u001b')
    await screen.shows((text) => text.includes('節点'))
    screen.type('/-l a in b\r')
    await screen.shows((text) => text.includes('unable to parse the label selector'))
    screen.type(':pools\r')
    await screen.shows((text) => text.includes('> web'))
    screen.type('\r')
    await screen.shows((text) => text.includes('> web-1') && text.includes('of web'))
    screen.type('\r')
    await screen.shows((text) => text.includes('> n1'))
    screen.type('\r')
    await screen.shows((text) => text.includes('pods on n1') && text.includes('> jobs'))
    screen.type('\u001b\u001b\u001b')
    await screen.shows((text) => text.includes('[pools 1]') && text.includes('> web'))
  })
})

test('CON-9 q, Ctrl-C, SIGTERM and SIGHUP leave the screen as it was', async () => {
  const ends: readonly ((screen: PlayedScreen) => void)[] = [
    (screen) => screen.type('q'),
    (screen) => screen.type('\u0003'),
    (screen) => screen.signal('SIGTERM'),
    (screen) => screen.signal('SIGHUP'),
  ]
  for (const end of ends)
    await onScreen({}, async (screen) => {
      assert.ok(screen.isAlternate)
      end(screen)
      await screen.ended()
      assert.ok(screen.raw.endsWith('\u001b[?25h\u001b[?1049l'), JSON.stringify(screen.raw.slice(-40)))
    })
})

test('CON-9 a stopped viewer gives the screen back, and takes it again when it goes on', async () => {
  await onScreen({}, async (screen) => {
    screen.signal('SIGTSTP')
    await screen.shows(() => !screen.isAlternate && screen.isStopped)
    screen.signal('SIGCONT')
    await screen.shows((text) => screen.isAlternate && text.includes('> n1'))
  })
})

test('CON-21 without --allow-actions keys change nothing; with it each shows its command and asks', async () => {
  await onScreen({}, async (screen) => {
    screen.type('u')
    await screen.shows((text) => text.includes('read-only: start with --allow-actions'))
  })
  await onScreen({ args: ['--allow-actions'] }, async (screen) => {
    screen.type('u')
    await screen.shows((text) => text.includes('run: kubectl cordon n1 ? y/N'))
    screen.type('n')
    await screen.shows((text) => text.includes('nothing was changed'))
    screen.type('uy')
    await screen.shows((text) => text.includes('a snapshot cannot be changed'))
  })
})

test('a text that is longer than the screen says so, and its last line is reached', async () => {
  await onScreen({}, async (screen) => {
    screen.type('?')
    const text = await screen.shows((shown) => shown.includes('help  lines 1 to '))
    assert.doesNotMatch(text, /such nodes, in no sum/)
    screen.type('G')
    await screen.shows((shown) => shown.includes('such nodes, in no sum'))
    screen.type('\u001b')
    await screen.shows((shown) => shown.includes('> n1'))
  })
})

test('a decision that is longer than its line is read in full, with what is said of its object', async () => {
  const own = join(folder, 'decided.jsonl')
  const message = `NodeClaim web-1 was created for ${'many '.repeat(20)}pods`
  await writeSnapshot(own, {
    ...snapshot,
    objects: snapshot.objects.filter(({ kind }) => kind !== 'Pod'),
    journal: [
      {
        id: '1',
        at: '2026-11-26T11:58:00Z',
        kind: 'decision',
        reason: 'Provisioned',
        message,
        nodeClaims: [],
        nodes: [],
      },
      {
        id: '2',
        at: '2026-11-26T11:59:00Z',
        kind: 'launch',
        reason: 'Provisioned',
        message,
        nodeClaims: ['web-1'],
        nodes: [],
      },
    ],
  })
  const screen = new PlayedScreen(['-s', own], {})
  const read = () => screen.text().replaceAll(/\s+/g, ' ')
  try {
    await screen.shows((text) => text.includes('NAME'))
    screen.type('5')
    await screen.shows((text) => text.includes('MESSAGE'))
    assert.ok(!read().includes(message))
    screen.type('d')
    await screen.shows((text) => text.includes('explain nodeclaim/web-1') && !text.includes('asking'))
    assert.ok(read().includes(`2026-11-26T11:59:00Z launch Provisioned: ${message} `), read())
    screen.type('\u001b')
    await screen.shows((text) => text.includes('MESSAGE'))
    screen.type('G')
    screen.type('d')
    await screen.shows((text) => text.includes('2026-11-26T11:58:00Z'))
    assert.ok(read().includes(message), 'a decision about no object yet')
    screen.type('\u001b')
    screen.type('4')
    await screen.shows((text) => text.includes('no pod waits for a node'))
  } finally {
    screen.close()
  }
})

test('a screen that is too small says what it needs, and shows all once it is larger', async () => {
  await onScreen({}, async (screen) => {
    screen.resize(59, 20)
    await screen.shows((text) => text.includes('59x20 is too small: 60x16 is needed'))
    screen.resize(100, 30)
    await screen.shows((text) => text.includes('> n1'))
  })
})

test('CON-5 piped, it prints lines or one table, without escape codes', async () => {
  const lines = await runCommand(['view', '-s', file])
  assert.match(lines.out, /^2026-11-26T12:00:00Z node n1: Ready small z1 pods 3\/\? cpu 75% age 60m$/m)
  const table = await runCommand(['view', '-s', file, '--once'])
  assert.match(
    table.out,
    /^2 nodes, 0 pending; cpu 1\.5\/4 \(38%\); EUR 0\.050\/hour EUR 36\.500\/month \?1$/m,
  )
  // oxlint-disable-next-line no-control-regex
  for (const { out } of [lines, table]) assert.doesNotMatch(out, /\u001b/)
})

test('CON-6 -o json prints one state as the published schema says, the same with --once', async () => {
  for (const once of [[], ['--once']]) {
    const { code, out, err } = await runCommand(['view', '-s', file, ...once, '-o', 'json'])
    assert.equal(code, 0, err)
    assert.deepEqual(assertPrinted(out), ['ClusterView'])
    const { header, nodes, pendingPods, takenAt } = JSON.parse(out) as PrintedView
    assert.equal(takenAt, '2026-11-26T12:00:00Z')
    assert.deepEqual(header.price, { perHour: 0.05, perMonth: 36.5, unpriced: 1 })
    assert.deepEqual(
      nodes.map(({ id }) => id),
      ['claim/web-1', 'node/節点-🦊'],
    )
    assert.equal(pendingPods[0]?.id, 'shop/waits')
  }
})

test("CON-2 eks-node-viewer's flags and its defaults file work, and unknown resources are an error", async () => {
  const unknown = await runCommand(['view', '-s', file, '--resources', 'cpuu'])
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /--resources: "cpuu" is unknown; use cpu, memory/)
  await writeFile(join(folder, '.eks-node-viewer'), '# mine\nresources=cpu,memory\ndisable-pricing=true\n')
  const env = { HOME: folder }
  const table = await runCommand(['view', '-s', file, '--once'], { env })
  assert.match(table.out, /memory 3Gi\/8Gi/)
  assert.doesNotMatch(table.out, /EUR/)
  const given = await runCommand(['view', '-s', file, '--once', '--resources=cpu'], { env })
  assert.doesNotMatch(given.out, /memory/)
  await writeFile(join(folder, '.eks-node-viewer'), 'resource=cpu\n')
  const wrong = await runCommand(['view', '-s', file, '--once'], { env })
  assert.match(wrong.err, /\.eks-node-viewer:1: "resource" is unknown/)
  assert.match((await runCommand(['view', '-v'])).out, /^v\d/)
})
