/** Linear programs: the least cost under linear limits. */
import highsModule from 'highs'

// The package's types describe its CommonJS build, where the loader is a member of what is imported here.
const loadHighs = highsModule as unknown as typeof highsModule.default

/** Of HiGHS' strategies the fastest here: 2 s for diverse(N), where the default takes 10. */
const primalSimplex = 4

/** Columns and rows as they are added; a row or column is its index. */
export class LinearProgram {
  readonly #costs: number[] = []
  readonly #rowLower: number[] = []
  readonly #rowUpper: number[] = []
  readonly #columns: (readonly [row: number, value: number])[][] = []

  addRow(lower: number, upper: number): number {
    this.#rowLower.push(lower)
    return this.#rowUpper.push(upper) - 1
  }

  addColumn(cost: number, entries: (readonly [row: number, value: number])[]): void {
    this.#costs.push(cost)
    this.#columns.push(entries)
  }

  /** The least cost. Throws when there is none. */
  async solve(): Promise<number> {
    const highs = await loadHighs()
    const starts = [0]
    for (const entries of this.#columns) starts.push((starts.at(-1) as number) + entries.length)
    const entries = this.#columns.flat()
    const [numCols, numRows] = [this.#costs.length, this.#rowLower.length]
    const data = {
      numCols,
      numRows,
      colCost: this.#costs,
      colLower: new Float64Array(numCols),
      colUpper: new Float64Array(numCols).fill(highs.infinity),
      rowLower: this.#rowLower,
      rowUpper: this.#rowUpper,
      matrix: {
        format: 'csc' as const,
        numRows,
        numCols,
        starts: Int32Array.from(starts),
        indices: Int32Array.from(entries, ([row]) => row),
        values: Float64Array.from(entries, ([, value]) => value),
      },
    }
    return highs.withModel(data, (model) => {
      model.options.set({ output_flag: false, simplex_strategy: primalSimplex })
      model.run()
      const status = model.getModelStatus()
      if (status !== highs.constants.modelStatus.optimal) throw new Error(`no lower bound: status ${status}`)
      return model.getObjectiveValue()
    })
  }
}
