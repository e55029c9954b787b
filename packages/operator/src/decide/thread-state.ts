/** Memory shared by the deciding thread and the one that started it. */

const words = { stop: 0, signs: 1, pod: 2 } as const
const nothing = -2

export class ThreadState {
  /** Passed to the other thread. */
  readonly memory: Int32Array

  constructor(memory: Int32Array = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT))) {
    this.memory = memory
  }

  /** Whether the decision under way should stop. */
  get shouldStop(): boolean {
    return Atomics.load(this.memory, words.stop) !== 0
  }

  set shouldStop(value: boolean) {
    Atomics.store(this.memory, words.stop, value ? 1 : 0)
  }

  /** Signs of life for the other thread. */
  sign(): void {
    Atomics.add(this.memory, words.signs, 1)
  }

  /** Changes as long as the thread makes progress. */
  get signs(): number {
    return Atomics.load(this.memory, words.signs)
  }

  /** @param pod index of the pod that the decision is about, -1 while it is about none; undefined after the decision. */
  readonly about = (pod: number = nothing): void => {
    Atomics.store(this.memory, words.pod, pod)
    this.sign()
  }

  get isDeciding(): boolean {
    return Atomics.load(this.memory, words.pod) !== nothing
  }

  /** Index of the pod that the decision is about; negative while it is about none. */
  get pod(): number {
    return Atomics.load(this.memory, words.pod)
  }
}
