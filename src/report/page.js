// Script of the HTML report: theme, sorting and filtering of tables, labels of a plot's dots. All
// data is in the page itself; without this script the page can be read all the same.
(function () {
  'use strict';
  var root = document.documentElement;
  root.classList.add('has-script');

  // The theme: as the system says, or as chosen; a page from a file may have nowhere to keep it.
  var themes = ['auto', 'light', 'dark'];
  var button = document.getElementById('theme');
  function keep(theme) {
    try { localStorage.setItem('gradcmp-theme', theme); } catch (refused) { return; }
  }
  function kept() {
    try { return localStorage.getItem('gradcmp-theme'); } catch (refused) { return null; }
  }
  function show(theme) {
    if (theme === 'auto') { root.removeAttribute('data-theme'); } else { root.setAttribute('data-theme', theme); }
    button.textContent = 'theme: ' + theme;
    button.setAttribute('data-value', theme);
  }
  show(themes.indexOf(kept()) === -1 ? 'auto' : kept());
  button.addEventListener('click', function () {
    var next = themes[(themes.indexOf(button.getAttribute('data-value')) + 1) % themes.length];
    keep(next);
    show(next);
  });

  // Sorting. A cell that is a number sorts as one; "-" (none) comes last either way.
  var words = new Intl.Collator('en', { numeric: true });
  function value(cell) {
    var text = cell.textContent.trim();
    if (text === '-' || text === '') { return null; }
    if (!cell.classList.contains('n')) { return text; }
    if (text === 'inf') { return Infinity; }
    var number = parseFloat(text.replace(/,/g, ''));
    return isNaN(number) ? text : number;
  }
  function compare(a, b) {
    if (typeof a === 'number') { if (typeof b === 'number') { return a === b ? 0 : a > b ? 1 : -1; } }
    return words.compare(String(a), String(b));
  }
  function sort(table, column, sign) {
    var body = table.tBodies[0];
    var rows = Array.prototype.map.call(body.rows, function (row, index) {
      return { row: row, key: value(row.cells[column]), index: index };
    });
    rows.sort(function (a, b) {
      if (a.key === null || b.key === null) {
        return a.key === b.key ? a.index - b.index : a.key === null ? 1 : -1;
      }
      return sign * compare(a.key, b.key) || a.index - b.index;
    });
    var sorted = document.createDocumentFragment();
    rows.forEach(function (entry) { sorted.appendChild(entry.row); });
    body.appendChild(sorted);
  }
  function clicked(table, head) {
    var was = head.getAttribute('aria-sort');
    // Numbers are looked at for the largest, names from the first.
    var first = head.classList.contains('n') ? 'descending' : 'ascending';
    var next = was === null ? first : was === 'ascending' ? 'descending' : 'ascending';
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (cell) { cell.removeAttribute('aria-sort'); });
    head.setAttribute('aria-sort', next);
    sort(table, head.cellIndex, next === 'ascending' ? 1 : -1);
  }
  document.querySelectorAll('table.sorts').forEach(function (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head) {
      head.tabIndex = 0;
      head.addEventListener('click', function () { clicked(table, head); });
      head.addEventListener('keydown', function (event) {
        if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); clicked(table, head); }
      });
    });
  });

  // Filtering: every word has to be in the row, and the row has to be of the chosen verdict.
  document.querySelectorAll('.tools[data-table]').forEach(function (tools) {
    var table = document.getElementById(tools.getAttribute('data-table'));
    var input = tools.querySelector('input'), choice = tools.querySelector('select');
    var count = tools.querySelector('.count');
    var texts = new Map();
    function apply() {
      var wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      var verdict = choice.value, shown = 0;
      Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
        if (!texts.has(row)) { texts.set(row, row.textContent.toLowerCase()); }
        var text = texts.get(row);
        var own = row.getAttribute('data-v') || '';
        var fits = verdict === '' || own.split(' ').indexOf(verdict) !== -1;
        fits = wanted.every(function (word) { return text.indexOf(word) !== -1; }) ? fits : false;
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      });
      count.textContent = shown + ' of ' + table.tBodies[0].rows.length;
    }
    input.addEventListener('input', apply);
    choice.addEventListener('change', apply);
    apply();
  });

  // Labels: the title of a dot is shown at once, by pointer and by finger.
  var tip = document.getElementById('tip');
  function place(event) {
    var wide = tip.offsetWidth, high = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, window.innerWidth - wide - 8)) + 'px';
    tip.style.top = Math.max(4, event.clientY + 16 + high > window.innerHeight ? event.clientY - high - 10 : event.clientY + 16) + 'px';
  }
  document.querySelectorAll('svg.plot').forEach(function (plot) {
    plot.addEventListener('pointerover', function (event) {
      var dot = event.target, title = dot.querySelector ? dot.querySelector('title') : null;
      if (dot === plot) { tip.hidden = true; return; }
      if (title) { dot.setAttribute('data-label', title.textContent); title.remove(); }
      var label = dot.getAttribute('data-label');
      tip.hidden = label === null;
      if (label !== null) { tip.textContent = label; place(event); }
    });
    plot.addEventListener('pointerleave', function () { tip.hidden = true; });
  });

  var copy = document.getElementById('copy');
  if (copy) {
    copy.addEventListener('click', function () {
      var command = document.getElementById('command');
      var range = document.createRange();
      range.selectNodeContents(command);
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      if (navigator.clipboard) { navigator.clipboard.writeText(command.textContent).then(function () { copy.textContent = 'copied'; }, function () { copy.textContent = 'selected'; }); }
    });
  }
}());
