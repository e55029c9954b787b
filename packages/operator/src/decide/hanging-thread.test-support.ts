/**
 * A thread that decides, hangs for ever at objects whose name begins with `hangs`, and at a pod named `starves` gets no
 * CPU for longer than it may give no sign of life.
 */
import { type Problem, solve } from '@tenon/engine'
import { examine } from '@tenon/engine/consolidation'
import { decideInThread } from './thread-program.ts'

const hangs = (name: string | undefined) => name?.startsWith('hangs') === true

function hang(): never {
  for (;;) continue
}

function starve(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

decideInThread({
  solve: (problem, control) => {
    hangAtObjects(problem)
    return solve(problem, {
      ...control,
      onPod: (pod) => {
        control.onPod?.(pod)
        if (hangs(problem.uids[pod])) hang()
        if (problem.uids[pod] === 'starves') starve(3000)
        if (pod >= 0 && problem.pools.some(({ nodePool }) => nodePool.metadata.name === 'hangs-at-pods'))
          hang()
      },
    })
  },
  examine: (problem, question, control) => {
    if (problem.uids.some(hangs)) hang()
    return examine(problem, question, control)
  },
})

function hangAtObjects({ pools, nodes, daemons }: Problem): void {
  const names = [
    ...pools.map(({ nodePool }) => nodePool.metadata.name),
    ...[...nodes, ...daemons].map(({ name }) => name),
  ]
  if (names.some((name) => name.startsWith('hangs') && name !== 'hangs-at-pods')) hang()
}
